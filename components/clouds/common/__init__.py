"""What adapters of several clouds need alike: kubeconfigs, certificates, the start of machines that join a cluster."""
