"""knowledge_svc."""
