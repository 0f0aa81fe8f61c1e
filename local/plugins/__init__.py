"""Resource-provider plugins of Pulumi: recorded packages, Kubernetes, and those of clouds on this machine."""
