"""OpenStack: Nova's servers, routes of a Neutron router, Octavia's load balancers."""
