"""How services are put together: here in one process; in a cluster, each in its own."""
