"""The programs of the catalogue's example images: something real behind a load balancer."""
