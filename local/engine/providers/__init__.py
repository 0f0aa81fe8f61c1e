"""Resource providers: the protocol, and its implementations."""
