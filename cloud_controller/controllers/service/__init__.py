"""The service controller: load balancers for Services of type LoadBalancer."""
