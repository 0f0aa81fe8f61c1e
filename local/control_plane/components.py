"""The flags of each component of a control plane: pure functions from a layout to command lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from local.addresses import socket_address

ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
)
EGRESS_PROXY = "egress-proxy"
BINARIES = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
COMPONENTS = (*BINARIES, EGRESS_PROXY)
"""All processes of a control plane; the proxy is a module of this project, the others are binaries."""

ENVIRONMENT: Mapping[str, Mapping[str, str]] = {
    **{name: {"GOMAXPROCS": "1"} for name in BINARIES},
    API_SERVER: {"GOMAXPROCS": "1", "GOGC": "400"},
}
"""By component. With more processors, Go wakes threads that find nothing to do: a sixth of the processor time.

An API server would spend a fifth of its own on collecting garbage at every doubling. Both cost it 230 MB of memory."""

ETCD_CLIENT_PORT = 2379
ETCD_PEER_PORT = 2380
API_SERVER_PORT = 6443
CONTROLLER_MANAGER_PORT = 10257
SCHEDULER_PORT = 10259
PORTS: Mapping[str, tuple[int, ...]] = {
    ETCD: (ETCD_CLIENT_PORT, ETCD_PEER_PORT),
    API_SERVER: (API_SERVER_PORT,),
    CONTROLLER_MANAGER: (CONTROLLER_MANAGER_PORT,),
    SCHEDULER: (SCHEDULER_PORT,),
    EGRESS_PROXY: (),
}
ALL_PORTS = tuple(port for ports in PORTS.values() for port in ports)

# A machine renews its Lease every few seconds, so a dead one is noticed within these, not after upstream's 50 s.
NODE_MONITOR_GRACE_SECONDS = 10
NODE_MONITOR_PERIOD_SECONDS = 2
# How long a pod stays bound to a node that is not ready before it is replaced; upstream waits 300 s.
NOT_READY_TOLERATION_SECONDS = 15

KUBELET_CLIENT, KUBELET_CLIENT_CA = "kubelet-client", "kubelet-client-ca"
EGRESS_SOCKET = "egress.sock"
"""Relative to the components' working directory: an absolute path may exceed a socket's limit."""

# The cluster's addresses are 10.x, and their sockets listen on 127.x. YAML that is JSON.
EGRESS_SELECTOR_CONFIGURATION: Mapping[str, Any] = {
    "apiVersion": "apiserver.k8s.io/v1beta1",
    "kind": "EgressSelectorConfiguration",
    "egressSelections": [
        {
            "name": "cluster",
            "connection": {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": EGRESS_SOCKET}}},
        }
    ],
}
# Only health probes are allowed without credentials. YAML that is JSON.
AUTHENTICATION_CONFIGURATION: Mapping[str, Any] = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AuthenticationConfiguration",
    "jwt": [],
    "anonymous": {
        "enabled": True,
        "conditions": [{"path": path} for path in ("/healthz", "/livez", "/readyz")],
    },
}


@dataclass(frozen=True, slots=True)
class Layout:
    """The files and addresses of one control plane. `address` is its 10.x address."""

    directory: Path
    address: str
    pod_cidr: IPv4Network
    service_cidr: IPv4Network
    cluster_name: str
    issuer: str = "https://kubernetes.default.svc"
    """The issuer in ServiceAccount tokens."""

    token_webhook: Path | None = None
    """The kubeconfig of a webhook that authenticates bearer tokens other than ServiceAccounts'."""

    @property
    def bind_address(self) -> str:
        """The 127.x address on which all components listen."""
        return socket_address(self.address)

    @property
    def endpoint(self) -> str:
        """The API server's URL, as a client on this machine dials it."""
        return f"https://{self.bind_address}:{API_SERVER_PORT}"

    @property
    def api_server_names(self) -> tuple[str, ...]:
        """Every name and address by which a client may reach the API server."""
        cluster_ip = str(self.service_cidr[1])
        return (
            *("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
            *(self.address, self.bind_address, cluster_ip, socket_address(cluster_ip)),
        )

    @property
    def pki(self) -> Path:
        return self.directory / "pki"

    @property
    def etcd_data(self) -> Path:
        return self.directory / "etcd"

    @property
    def authentication_configuration(self) -> Path:
        return self.directory / "authentication.json"

    @property
    def egress_selector_configuration(self) -> Path:
        return self.directory / "egress.json"

    def certificate(self, stem: str) -> Path:
        return self.pki / f"{stem}.crt"

    def key(self, stem: str) -> Path:
        return self.pki / f"{stem}.key"

    def kubeconfig(self, component: str) -> Path:
        return self.directory / f"{component}.kubeconfig"

    def record(self, component: str) -> Path:
        return self.directory / "processes" / f"{component}.json"

    def log(self, component: str) -> Path:
        return self.directory / "logs" / f"{component}.log"


def arguments(component: str, layout: Layout) -> list[str]:
    """The component's command line, without the binary."""
    flags = {
        ETCD: _etcd,
        API_SERVER: _api_server,
        CONTROLLER_MANAGER: _controller_manager,
        SCHEDULER: _scheduler,
    }[component](layout)
    return [f"--{name}={value}" for name, value in flags.items()]


def _etcd(layout: Layout) -> dict[str, object]:
    client = f"https://{layout.bind_address}:{ETCD_CLIENT_PORT}"
    peer = f"https://{layout.bind_address}:{ETCD_PEER_PORT}"
    return {
        "name": "default",
        "data-dir": layout.etcd_data,
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        **{
            f"{prefix}{flag}": value
            for prefix in ("", "peer-")
            for flag, value in {
                "cert-file": layout.certificate("etcd"),
                "key-file": layout.key("etcd"),
                "trusted-ca-file": layout.certificate("etcd-ca"),
                "client-cert-auth": "true",
            }.items()
        },
        "log-level": "warn",
    }


def _api_server(layout: Layout) -> dict[str, object]:
    return {
        "bind-address": layout.bind_address,
        "secure-port": API_SERVER_PORT,
        # The address in the EndpointSlice of Service `kubernetes`, where loopback addresses are invalid.
        "advertise-address": layout.address,
        "etcd-servers": f"https://{layout.bind_address}:{ETCD_CLIENT_PORT}",
        "etcd-cafile": layout.certificate("etcd-ca"),
        "etcd-certfile": layout.certificate("etcd-client"),
        "etcd-keyfile": layout.key("etcd-client"),
        "tls-cert-file": layout.certificate(API_SERVER),
        "tls-private-key-file": layout.key(API_SERVER),
        "client-ca-file": layout.certificate("ca"),
        "authentication-config": layout.authentication_configuration,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        **({"authentication-token-webhook-config-file": layout.token_webhook} if layout.token_webhook else {}),
        **({"authentication-token-webhook-version": "v1"} if layout.token_webhook else {}),
        "service-account-issuer": layout.issuer,
        "service-account-key-file": layout.certificate("service-account"),
        "service-account-signing-key-file": layout.key("service-account"),
        "service-cluster-ip-range": layout.service_cidr,
        "default-not-ready-toleration-seconds": NOT_READY_TOLERATION_SECONDS,
        "default-unreachable-toleration-seconds": NOT_READY_TOLERATION_SECONDS,
        # Machines report 10.x addresses as their node addresses, and a kubelet stand-in's certificate has them.
        "kubelet-preferred-address-types": "InternalIP",
        "kubelet-certificate-authority": layout.certificate("ca"),
        "kubelet-client-certificate": layout.certificate(KUBELET_CLIENT),
        "kubelet-client-key": layout.key(KUBELET_CLIENT),
        "egress-selector-config-file": layout.egress_selector_configuration,
        "profiling": "false",
    }


def _controller_manager(layout: Layout) -> dict[str, object]:
    return {
        **_client_component(CONTROLLER_MANAGER, CONTROLLER_MANAGER_PORT, layout),
        "cloud-provider": "external",
        # It writes warnings into an admission policy's status: seconds of processor time for each policy of ours.
        "controllers": "*,-validatingadmissionpolicy-status-controller",
        "allocate-node-cidrs": "true",
        "cluster-cidr": layout.pod_cidr,
        "node-cidr-mask-size": 24,
        "service-cluster-ip-range": layout.service_cidr,
        "cluster-name": layout.cluster_name,
        "node-monitor-period": f"{NODE_MONITOR_PERIOD_SECONDS}s",
        "node-monitor-grace-period": f"{NODE_MONITOR_GRACE_SECONDS}s",
        "root-ca-file": layout.certificate("ca"),
        "use-service-account-credentials": "true",
        "service-account-private-key-file": layout.key("service-account"),
        # Upstream's 20 a second is meant for a shared API server; here it only slows the start.
        "kube-api-qps": 200,
        "kube-api-burst": 400,
    }


def _scheduler(layout: Layout) -> dict[str, object]:
    return _client_component(SCHEDULER, SCHEDULER_PORT, layout)


def _client_component(component: str, port: int, layout: Layout) -> dict[str, object]:
    """The common flags of kube-controller-manager and kube-scheduler."""
    kubeconfig = layout.kubeconfig(component)
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        # Otherwise it requests a front proxy's CA from the cluster, and logs its absence forever.
        "authentication-skip-lookup": "true",
        "client-ca-file": layout.certificate("ca"),
        "bind-address": layout.bind_address,
        "secure-port": port,
        "tls-cert-file": layout.certificate(component),
        "tls-private-key-file": layout.key(component),
        # There is one of each; waiting for the lease of a killed predecessor would only delay it.
        "leader-elect": "false",
        "profiling": "false",
    }
