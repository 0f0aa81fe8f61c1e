"""The programs of the catalogue's example images, for use behind a load balancer."""
