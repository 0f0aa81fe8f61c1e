"""What forwards traffic to backends: a load balancer's listeners and a node's ports."""
