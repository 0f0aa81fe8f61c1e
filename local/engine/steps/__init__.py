"""What happens to each resource, and in which order."""
