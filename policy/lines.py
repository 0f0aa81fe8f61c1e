"""The lines of the production checklist (seed 002 §11). Rules name those that they hold (`About.lines`)."""

from __future__ import annotations

from typing import Final

LINES: Final = {
    "11.1.1": "Cloud credentials are configured correctly",
    "11.1.2": "The rights in the cloud's API are sufficient",
    "11.1.3": "The network reaches the cloud's metadata service",
    "11.1.4": "VPC and subnets are configured correctly",
    "11.1.5": "The CCM's image fits the version of Kubernetes",
    "11.1.6": "RBAC is configured",
    "11.1.7": "The cloud config is correct",
    "11.1.8": "Leader election is enabled",
    "11.1.9": "kube-controller-manager runs no cloud controllers",
    "11.1.10": "Kubelets run with --cloud-provider=external",
    "11.1.11": "kube-proxy is configured correctly",
    "11.2.1": "The CCM's pods are running",
    "11.2.2": "A leader is elected",
    "11.2.3": "Nodes are initialised",
    "11.2.4": "Nodes have provider IDs",
    "11.2.5": "Nodes have the right labels of region and zone",
    "11.2.6": "A load balancer can be created",
    "11.2.7": "Health checks pass",
    "11.2.8": "Routes are created, where the CCM writes routes",
    "11.2.9": "Metrics are served",
    "11.3.1": "IRSA, RRSA or workload identity is used",
    "11.3.2": "Credentials are rotated",
    "11.3.3": "Rights are the least that are needed",
    "11.3.4": "The CCM's egress is restricted",
    "11.3.5": "The cloud's API is reached by internal endpoints",
    "11.3.6": "Calls of the cloud's API are audited",
    "11.3.7": "The CCM's logs persist",
    "11.3.8": "Alerts are configured",
    "11.3.9": "The CCM does not run as root",
    "11.3.10": "The CCM's root filesystem is read-only",
    "11.3.11": "Resources are limited",
    "11.4.1": "The CCM's health is watched all the time",
    "11.4.2": "The error rate of the cloud's API stays below 1 %",
    "11.4.3": "The latency of the cloud's API (P99) stays below 10 s",
    "11.4.4": "There is a leader all the time",
    "11.4.5": "Fewer than 10 nodes wait for their initialisation",
    "11.4.6": "Quotas of load balancers and addresses suffice",
    "11.4.7": "Credentials and certificates have not expired",
    "11.4.8": "New versions and vulnerabilities are looked up every month",
}
"""Each line's number and what it asks for, in the seed's order."""
