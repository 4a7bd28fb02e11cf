"""What two services need: contracts, ports and the runtime. Imports no service."""
