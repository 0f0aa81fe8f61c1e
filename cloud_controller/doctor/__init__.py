"""What is wrong with a cluster's cloud controller manager (CCM), and why: checks of a running cluster.

It only reads: the Kubernetes API, the cloud and, if asked to, the CCM's metrics. It works while the CCM is down.
"""
