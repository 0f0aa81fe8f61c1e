"""The keys, certificates and kubeconfigs of a control plane, written to its folder."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import yaml

from local.control_plane import pki
from local.control_plane.components import (
    API_SERVER,
    AUTHENTICATION_CONFIGURATION,
    CONTROLLER_MANAGER,
    EGRESS_SELECTOR_CONFIGURATION,
    KUBELET_CLIENT,
    KUBELET_CLIENT_CA,
    SCHEDULER,
    Layout,
)

ADMIN = "kubernetes-admin"


def write_credentials(layout: Layout) -> None:
    """Write the files that the components read at their start; the CAs and the ServiceAccount key are made only once.

    Everything else is signed again, so a control plane started at least once a year never has an expired certificate.
    """
    layout.pki.mkdir(parents=True, exist_ok=True)
    layout.directory.chmod(0o700)
    cluster = cluster_authority(layout)
    etcd = pki.Authority.load_or_create(layout.pki, "etcd-ca", "etcd-ca")
    if not layout.certificate("service-account").exists():
        private, public = pki.create_signing_key()
        pki.write_private(layout.key("service-account"), private)
        pki.write_private(layout.certificate("service-account"), public)

    pki.write_pair(layout.pki, "etcd", etcd.issue_server("etcd", [layout.bind_address], client=True))
    pki.write_pair(layout.pki, "etcd-client", etcd.issue_client("kube-apiserver"))
    pki.write_pair(layout.pki, API_SERVER, cluster.issue_server(API_SERVER, layout.api_server_names))
    pki.write_pair(layout.pki, KUBELET_CLIENT, _kubelet_client_authority(layout).issue_client("kube-apiserver"))
    admin = cluster.issue_client(ADMIN, ["system:masters"])
    pki.write_pair(layout.pki, "admin", admin)
    pki.write_private(layout.kubeconfig("admin"), kubeconfig_text(layout, ADMIN, admin))
    for component in (CONTROLLER_MANAGER, SCHEDULER):
        pki.write_pair(layout.pki, component, cluster.issue_server(component, [layout.bind_address]))
        user = cluster.issue_client(f"system:{component}")
        pki.write_private(layout.kubeconfig(component), kubeconfig_text(layout, f"system:{component}", user))
    pki.write_private(layout.authentication_configuration, json.dumps(AUTHENTICATION_CONFIGURATION))
    pki.write_private(layout.egress_selector_configuration, json.dumps(EGRESS_SELECTOR_CONFIGURATION))


def write_kubelet_credentials(layout: Layout, directory: Path, node_name: str, address: str, ttl: timedelta) -> None:
    """Write the credentials of a machine's kubelet and proxier to its folder; `address` is the machine's (10.x)."""
    for component, user, groups in (
        ("kubelet", f"system:node:{node_name}", ["system:nodes"]),
        ("proxier", "system:kube-proxy", []),
    ):
        pki.write_private(directory / f"{component}.kubeconfig", issue_kubeconfig(layout, user, groups, ttl))
    serving = cluster_authority(layout).issue_server(f"system:node:{node_name}", [address], ttl=ttl)
    pki.write_pair(directory, "kubelet", serving)
    pki.write_private(directory / f"{KUBELET_CLIENT_CA}.crt", _kubelet_client_authority(layout).pem)


def cluster_authority(layout: Layout) -> pki.Authority:
    """The CA that clients and servers of the cluster's API trust."""
    layout.pki.mkdir(parents=True, exist_ok=True)
    return pki.Authority.load_or_create(layout.pki, "ca", "kubernetes")


def _kubelet_client_authority(layout: Layout) -> pki.Authority:
    """A CA of the API server's alone: holders of the cluster CA's certificates must not exec in pods past it."""
    layout.pki.mkdir(parents=True, exist_ok=True)
    return pki.Authority.load_or_create(layout.pki, KUBELET_CLIENT_CA, KUBELET_CLIENT_CA)


def issue_kubeconfig(layout: Layout, user: str, groups: Sequence[str], ttl: timedelta) -> str:
    """A kubeconfig (YAML) whose client certificate makes its holder `user` in `groups` for `ttl`."""
    return kubeconfig_text(layout, user, cluster_authority(layout).issue_client(user, groups, ttl=ttl))


def kubeconfig_text(layout: Layout, user: str, pair: pki.KeyPair) -> str:
    """A kubeconfig (YAML) with everything embedded."""
    certificate_authority = layout.certificate("ca").read_text()
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": layout.cluster_name,
                    "cluster": {
                        "server": layout.endpoint,
                        "certificate-authority-data": _base64(certificate_authority),
                    },
                }
            ],
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate-data": _base64(pair.certificate),
                        "client-key-data": _base64(pair.key),
                    },
                }
            ],
            "contexts": [{"name": "default", "context": {"cluster": layout.cluster_name, "user": user}}],
            "current-context": "default",
        },
        sort_keys=False,
    )


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
