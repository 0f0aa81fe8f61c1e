"""Kubeconfigs, as texts."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any


def with_certificate(*, cluster: str, endpoint: str, authority: str, certificate: str, key: str) -> str:
    """With a client certificate and its key; all PEM."""
    user = {"client-certificate-data": as_base64(certificate), "client-key-data": as_base64(key)}
    return kubeconfig(cluster, endpoint, as_base64(authority), user)


def kubeconfig(cluster: str, endpoint: str, certificate_authority: str, user: Mapping[str, Any]) -> str:
    """With one cluster and one user; the certificate authority is base64 of PEM."""
    server = {"server": endpoint, "certificate-authority-data": certificate_authority}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": server}],
        "users": [{"name": cluster, "user": dict(user)}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": cluster,
    }
    return json.dumps(content, indent=2)


def as_base64(text: str) -> str:
    """Base64 of a text."""
    return base64.b64encode(text.encode()).decode()
