"""The program that declares the resources: running it, and the calls between it and the engine."""
