"""synthesizer_svc: writes kernels for expansions, by choosing schedules and, where one is configured, with a model."""
