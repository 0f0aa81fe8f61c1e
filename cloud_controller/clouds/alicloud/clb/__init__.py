"""Classic load balancers (CLB, product `slb`) of Alibaba Cloud."""
