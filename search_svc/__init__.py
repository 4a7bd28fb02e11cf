"""search_svc."""
