"""Kubeconfigs of clusters on AWS, as texts."""

from __future__ import annotations

from ..common.kubeconfigs import kubeconfig


def with_aws_cli(*, cluster: str, region: str, endpoint: str, certificate_authority: str) -> str:
    """As `aws eks update-kubeconfig` writes it: clients get a token when they need one.

    It holds no token: that would expire after 15 minutes, and a destroy reads the kubeconfig from the state.
    """
    token = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["eks", "get-token", "--cluster-name", cluster, "--region", region, "--output", "json"],
        "interactiveMode": "Never",
    }
    return kubeconfig(cluster, endpoint, certificate_authority, {"exec": token})
