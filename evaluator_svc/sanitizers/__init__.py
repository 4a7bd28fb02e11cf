"""What a vendor's sanitizers find in one winner's launches: the last step of trust on a GPU."""
