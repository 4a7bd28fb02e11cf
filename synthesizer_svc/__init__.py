"""synthesizer_svc."""
