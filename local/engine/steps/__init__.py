"""The steps of each resource, and their order."""
