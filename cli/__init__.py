"""The front door a person types at. Each command is one module under ``cli/commands``."""
