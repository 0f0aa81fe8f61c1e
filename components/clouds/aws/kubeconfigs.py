"""Kubeconfigs of clusters on AWS, as texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


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
    return _text(cluster, endpoint, certificate_authority, {"exec": token})


def with_certificate(
    *, cluster: str, endpoint: str, certificate_authority: str, certificate: str, private_key: str
) -> str:
    """With a client certificate and its key, as base64 of PEM."""
    user = {"client-certificate-data": certificate, "client-key-data": private_key}
    return _text(cluster, endpoint, certificate_authority, user)


def _text(cluster: str, endpoint: str, certificate_authority: str, user: Mapping[str, Any]) -> str:
    server = {"server": endpoint, "certificate-authority-data": certificate_authority}
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": server}],
        "users": [{"name": cluster, "user": dict(user)}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": cluster,
    }
    return json.dumps(kubeconfig, indent=2)
