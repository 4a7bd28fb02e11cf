"""The whole system on one machine without Docker and without root: servers from packages, services as processes."""
