"""The cloud-independent half of load balancers: model, annotations, members, diff and operations."""
