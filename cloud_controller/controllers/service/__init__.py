"""The service controller: gives each Service of type LoadBalancer its load balancer."""
