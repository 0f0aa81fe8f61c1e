"""A machine of a cluster: a kubelet stand-in that runs pods as processes, and a node-proxier, in one process."""
