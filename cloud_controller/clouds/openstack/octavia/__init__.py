"""Octavia's load balancers, with floating IPs of Neutron."""
