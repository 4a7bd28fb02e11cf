"""evaluator_svc."""
