"""Upstream's flags that this daemon does not support: each error names the replacement.

So the errors for a manifest of the upstream cloud controller manager list what to change in it. A value that matches
what this daemon does anyway is accepted.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

_KUBE_CONTROLLER_MANAGER = "kube-controller-manager allocates node CIDRs; set it there, and --cluster-cidr here"
_WEBHOOKS = "this daemon serves no webhooks"
_MIGRATION = "stop the old manager's controllers first (docs/daemon.md)"
_CLIENT_CERTIFICATES = "clients authenticate with bearer tokens (TokenReview); client certificates are not supported"
_CACHE = "authentication and authorization results are cached for 10 s"
_TLS = "the server uses TLS 1.2 or later with Python's default ciphers"
_PERIODS = (
    "caches are not resynced; use --node-status-update-frequency, --route-reconciliation-period and "
    "--service-resync-period"
)
_LOGS = "use --v, --log-level and --logging-format"
_METRICS = "/metrics always serves all series"

# Flag: (values that are accepted, advice for all others).
FLAGS: dict[str, tuple[tuple[str, ...], str]] = {
    "allocate-node-cidrs": (("false",), _KUBE_CONTROLLER_MANAGER),
    "cidr-allocator-type": ((), _KUBE_CONTROLLER_MANAGER),
    "node-cidr-mask-size": ((), _KUBE_CONTROLLER_MANAGER),
    "use-service-account-credentials": (
        ("false",),
        "all controllers share one identity with exactly the permissions of the enabled ones (docs/daemon.md)",
    ),
    "enable-leader-migration": (("false",), _MIGRATION),
    "leader-migration-config": ((), _MIGRATION),
    "leader-elect-resource-lock": (("leases",), "the lock is always a Lease"),
    "controller-start-interval": (("0", "0s"), "controllers start together, and their first passes share reads"),
    "min-resync-period": ((), _PERIODS),
    "node-sync-period": ((), _PERIODS),
    "master": ((), "set the API server's address in --kubeconfig"),
    "kube-api-content-type": (("application/json",), "the client uses JSON"),
    "profiling": (("false",), "there is no profiling endpoint; use py-spy"),
    "contention-profiling": (("false",), "there is no profiling endpoint; use py-spy"),
    "feature-gates": (("",), "there are no feature gates"),
    "external-cloud-volume-plugin": ((), "controller volume serves the StorageClasses that name its provisioner"),
    "permit-port-sharing": (("false",), "the port cannot be shared"),
    "permit-address-sharing": (("false",), "the port cannot be shared"),
    "http2-max-streams-per-connection": ((), "the server uses HTTP/1.1"),
    "cert-dir": ((), "use --tls-cert-file and --tls-private-key-file; by default the certificate is self-signed"),
    "tls-sni-cert-key": ((), "SNI is not supported; use --tls-cert-file"),
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
    """Add all flags to the parser, hidden from help."""
    for flag in FLAGS:
        parser.add_argument(f"--{flag}", action=_UpstreamOnly, nargs="?", const="true", help=argparse.SUPPRESS)


def refusal(flag: str, value: str) -> str | None:
    """Why this value of an upstream flag is rejected; None if it is accepted."""
    harmless, advice = FLAGS[flag]
    if value in harmless:
        return None
    allowed = f" (allowed: {', '.join(repr(each) for each in harmless)}, or unset)" if harmless else ""
    return f"not supported: {advice}{allowed}"


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
