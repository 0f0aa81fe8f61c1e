"""The Kubernetes objects by which Prometheus and Grafana find the daemon, as plain values. Pure.

The Pulumi program and `cloud-controller manifests` share them, as they share those of the daemon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files

import yaml

from cloud_controller.manifests import NAME, NAMESPACE, SECURE_PORT, Manifest, renamed
from cloud_controller.monitoring.alerts import RUNBOOKS, groups

OPTION = "--monitoring"
SCRAPER = "monitoring/prometheus-k8s"
"""The ServiceAccount of kube-prometheus' Prometheus."""
ALERTS = f"{NAME}-alerts"
DASHBOARD = f"{NAME}-dashboard"
METRICS = f"system:{NAME}-metrics"
_LABELS = {"k8s-app": NAME}
_OPERATOR = "monitoring.coreos.com/v1"
_RBAC = "rbac.authorization.k8s.io"


class Mode(StrEnum):
    """How Prometheus finds the daemon and its alert rules."""

    OPERATOR = "operator"
    """By the custom resources of the Prometheus operator, whose definitions the cluster must have."""
    ANNOTATIONS = "annotations"
    """By the annotations of its pods; the rules are in a ConfigMap."""
    OFF = "off"
    """Not at all, apart from the annotations of its pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitoring:
    """What is set. `provider`: `Cloud.provider_name`. `name`: of the daemon's objects, and so the job label.

    `scraper`: NAMESPACE/NAME of Prometheus' ServiceAccount. `labels`: of the operator's objects, where Prometheus
    selects by them (`release: NAME` for the Helm chart). `runbooks`: where the runbooks' pages are.
    """

    mode: Mode
    provider: str
    name: str = NAME
    scraper: str = SCRAPER
    labels: Mapping[str, str] = field(default_factory=dict)
    runbooks: str = RUNBOOKS


def make(monitoring: Monitoring) -> tuple[Manifest, ...]:
    """The objects, in the order in which to create them."""
    match monitoring.mode:
        case Mode.OFF:
            found: tuple[Manifest, ...] = ()
        case Mode.ANNOTATIONS:
            found = (*_rights(monitoring.scraper), _rules_file(monitoring), _dashboard())
        case Mode.OPERATOR:
            scraped = (_service(), _service_monitor(monitoring.labels))
            found = (*_rights(monitoring.scraper), *scraped, _prometheus_rule(monitoring), _dashboard())
    return tuple(renamed(each, monitoring.name) for each in found)


def _rights(scraper: str) -> tuple[Manifest, Manifest]:
    """What the daemon asks of whoever reads its metrics. kube-prometheus gives its own Prometheus the same right."""
    namespace, _, name = scraper.partition("/")
    named = {"metadata": {"name": METRICS, "labels": dict(_LABELS)}}
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", **named}
    binding = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRoleBinding", **named}
    return (
        role | {"rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]},
        binding
        | {
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": METRICS},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    )


def _service() -> Manifest:
    """A name for the pods' addresses: an operator's PodMonitor may not use Prometheus' own token."""
    port = {"name": "secure", "port": SECURE_PORT, "protocol": "TCP", "targetPort": "secure"}
    return _object("v1", "Service") | {"spec": {"clusterIP": "None", "selector": dict(_LABELS), "ports": [port]}}


def _service_monitor(labels: Mapping[str, str]) -> Manifest:
    endpoint = {
        "port": "secure",
        "scheme": "https",
        "interval": "30s",
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        # The daemon signs its certificate itself; the network policy, if there is one, leaves only its pods to answer.
        "tlsConfig": {"insecureSkipVerify": True},
    }
    spec = {
        "jobLabel": "k8s-app",
        "selector": {"matchLabels": dict(_LABELS)},
        "namespaceSelector": {"matchNames": [NAMESPACE]},
        "endpoints": [endpoint],
    }
    return _object(_OPERATOR, "ServiceMonitor", labels=labels) | {"spec": spec}


def _prometheus_rule(monitoring: Monitoring) -> Manifest:
    # What older releases of kube-prometheus select by.
    selected = {"prometheus": "k8s", "role": "alert-rules", **monitoring.labels}
    return _object(_OPERATOR, "PrometheusRule", labels=selected) | {"spec": {"groups": _groups(monitoring)}}


def _rules_file(monitoring: Monitoring) -> Manifest:
    text = yaml.safe_dump({"groups": _groups(monitoring)}, sort_keys=False, width=120)
    return _object("v1", "ConfigMap", ALERTS) | {"data": {"cloud-controller-manager.rules.yaml": text}}


def _dashboard() -> Manifest:
    text = files("cloud_controller.monitoring").joinpath("dashboard.json").read_text()
    # The label that Grafana's sidecar looks for.
    labels = {"grafana_dashboard": "1"}
    return _object("v1", "ConfigMap", DASHBOARD, labels) | {"data": {"cloud-controller-manager.json": text}}


def _groups(monitoring: Monitoring) -> list[Manifest]:
    return groups(monitoring.provider, job=monitoring.name, runbooks=monitoring.runbooks)


def _object(api_version: str, kind: str, name: str = NAME, labels: Mapping[str, str] | None = None) -> Manifest:
    named = {"name": name, "namespace": NAMESPACE, "labels": {**_LABELS, **(labels or {})}}
    return {"apiVersion": api_version, "kind": kind, "metadata": named}
