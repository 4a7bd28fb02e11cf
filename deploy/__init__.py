"""How services are put together: in one process, as a local cluster, in containers."""
