"""What manages resources: the protocol, and the providers there are."""
