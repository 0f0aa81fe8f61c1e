"""Upstream's flags that mean nothing here: each is refused with what to do instead, or taken where it asks for nothing.

A manifest that was written for the upstream cloud controller manager so says itself what must be changed in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

_KUBE_CONTROLLER_MANAGER = "kube-controller-manager gives nodes their ranges: set it there, and --cluster-cidr here"
_WEBHOOKS = "this daemon serves no webhooks"
_MIGRATION = "leader migration is not built: stop the old manager's controllers first (docs/daemon.md)"
_CLIENT_CERTIFICATES = "who may read /metrics is asked of the API server (TokenReview); client certificates say nothing"
_CACHE = "answers about who may read /metrics are kept for 10 s"
_TLS = "TLS is Python's: version 1.2 at least, and its default ciphers"
_PERIODS = (
    "caches are not resynced: the full passes have flags of their own (--node-status-update-frequency, "
    "--route-reconciliation-period, --service-resync-period)"
)
_LOGS = "use --v, --log-level and --logging-format"
_METRICS = "all of /metrics is always served"

# Flag: (values that ask for nothing, what to do).
FLAGS: dict[str, tuple[tuple[str, ...], str]] = {
    "allocate-node-cidrs": (("false",), _KUBE_CONTROLLER_MANAGER),
    "cidr-allocator-type": ((), _KUBE_CONTROLLER_MANAGER),
    "node-cidr-mask-size": ((), _KUBE_CONTROLLER_MANAGER),
    "use-service-account-credentials": (
        ("false",),
        "all controllers share one identity, which has exactly the rights of the enabled ones (docs/daemon.md)",
    ),
    "enable-leader-migration": (("false",), _MIGRATION),
    "leader-migration-config": ((), _MIGRATION),
    "leader-elect-resource-lock": (("leases",), "the lock is always a Lease"),
    "controller-start-interval": (("0", "0s"), "controllers start at once: their first passes share their reads"),
    "min-resync-period": ((), _PERIODS),
    "node-sync-period": ((), _PERIODS),
    "master": ((), "name the API server in --kubeconfig"),
    "kube-api-content-type": (("application/json",), "objects are exchanged as JSON"),
    "profiling": (("false",), "profiles are not served; use py-spy on the process"),
    "contention-profiling": (("false",), "profiles are not served; use py-spy on the process"),
    "feature-gates": (("",), "there are none here"),
    "external-cloud-volume-plugin": ((), "controller volume provisions for the StorageClasses that name its cloud"),
    "permit-port-sharing": (("false",), "one process has the port"),
    "permit-address-sharing": (("false",), "one process has the port"),
    "http2-max-streams-per-connection": ((), "HTTP/1.1 is served"),
    "cert-dir": ((), "name the files: --tls-cert-file and --tls-private-key-file; without them a certificate is made"),
    "tls-sni-cert-key": ((), "one certificate is served: --tls-cert-file"),
    "tls-cipher-suites": ((), _TLS),
    "tls-min-version": (("VersionTLS12",), _TLS),
    "client-ca-file": ((), _CLIENT_CERTIFICATES),
    "requestheader-allowed-names": ((), _CLIENT_CERTIFICATES),
    "requestheader-client-ca-file": ((), _CLIENT_CERTIFICATES),
    "requestheader-extra-headers-prefix": ((), _CLIENT_CERTIFICATES),
    "requestheader-group-headers": ((), _CLIENT_CERTIFICATES),
    "requestheader-uid-headers": ((), _CLIENT_CERTIFICATES),
    "requestheader-username-headers": ((), _CLIENT_CERTIFICATES),
    "authentication-skip-lookup": (("false",), _CLIENT_CERTIFICATES),
    "authentication-tolerate-lookup-failure": (("false",), _CLIENT_CERTIFICATES),
    "authentication-token-webhook-cache-ttl": (("10s",), _CACHE),
    "authorization-webhook-cache-authorized-ttl": (("10s",), _CACHE),
    "authorization-webhook-cache-unauthorized-ttl": (("10s",), _CACHE),
    "webhooks": ((), _WEBHOOKS),
    "webhook-bind-address": ((), _WEBHOOKS),
    "webhook-cert-dir": ((), _WEBHOOKS),
    "webhook-secure-port": (("0",), _WEBHOOKS),
    "webhook-tls-cert-file": ((), _WEBHOOKS),
    "webhook-tls-cipher-suites": ((), _WEBHOOKS),
    "webhook-tls-min-version": ((), _WEBHOOKS),
    "webhook-tls-private-key-file": ((), _WEBHOOKS),
    "vmodule": ((), _LOGS),
    "log-flush-frequency": ((), _LOGS),
    "log-json-info-buffer-size": ((), _LOGS),
    "log-json-split-stream": ((), _LOGS),
    "log-text-info-buffer-size": ((), _LOGS),
    "log-text-split-stream": ((), _LOGS),
    "disabled-metrics": ((), _METRICS),
    "allow-metric-labels": ((), _METRICS),
    "allow-metric-labels-manifest": ((), _METRICS),
    "show-hidden-metrics-for-version": ((), _METRICS),
}


def add(parser: argparse.ArgumentParser) -> None:
    """Let the parser know them all; help does not show them."""
    for flag in FLAGS:
        parser.add_argument(f"--{flag}", action=_UpstreamOnly, nargs="?", const="true", help=argparse.SUPPRESS)


def refusal(flag: str, value: str) -> str | None:
    """Why this value of an upstream flag is refused, or None where it asks for nothing."""
    harmless, advice = FLAGS[flag]
    if value in harmless:
        return None
    allowed = f" (allowed: {', '.join(repr(each) for each in harmless)}, or nothing)" if harmless else ""
    return f"not offered here: {advice}{allowed}"


class _UpstreamOnly(argparse.Action):
    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        _namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if why := refusal(str(option_string).removeprefix("--"), str(values)):
            raise argparse.ArgumentError(self, why)
