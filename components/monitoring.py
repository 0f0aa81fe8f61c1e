"""What watches the cloud controller manager: how Prometheus finds it, its alert rules, and its dashboard.

Its objects are those of `cloud_controller.monitoring.manifests`; here they become resources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import ConfigMap, Service
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding

from cloud_controller.clouds import descriptor
from cloud_controller.manifests import NAME, Manifest
from cloud_controller.monitoring import manifests as monitoring
from cloud_controller.monitoring.alerts import RUNBOOKS

from . import inputs
from .arguments import checked
from .manifest_fields import arguments_of

_KINDS = {each.__name__: each for each in (ClusterRole, ClusterRoleBinding, ConfigMap, Service)}
_ACCOUNT = re.compile(f"{inputs.DNS_LABEL.pattern}/{inputs.DNS_LABEL.pattern}")


class MonitoringArgs(TypedDict):
    """Arguments of `Monitoring`."""

    cloud: str
    """The cloud of the daemon, which is in the names of two of its series."""
    mode: str
    """`operator`: objects of the Prometheus operator, whose definitions the cluster must have; `annotations`: the
    annotations of the daemon's pods lead Prometheus to them, and the rules are in a ConfigMap."""
    name: NotRequired[str]
    """The name of the daemon's objects, where it is not the usual one."""
    scraper: NotRequired[str]
    """The ServiceAccount of Prometheus, as NAMESPACE/NAME; kube-prometheus' if not given."""
    labels: NotRequired[Mapping[str, str]]
    """Labels of the operator's objects, where Prometheus selects by them."""
    runbooks: NotRequired[str]
    """The URL of the runbooks, where they are published."""


class Monitoring(pulumi.ComponentResource):
    """The right to read the daemon's metrics, its alert rules, its dashboard and, with the operator, its scrapes."""

    @inputs.naming_itself
    def __init__(self, name: str, args: MonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        args = checked(MonitoringArgs, args)
        modes = [mode.value for mode in monitoring.Mode if mode is not monitoring.Mode.OFF]
        inputs.check("mode", args["mode"], ", ".join(modes), lambda v: v in modes)
        scraper = args.get("scraper", monitoring.SCRAPER)
        inputs.check("scraper", scraper, "NAMESPACE/NAME", lambda v: _ACCOUNT.fullmatch(v) is not None)
        made = monitoring.make(
            monitoring.Monitoring(
                mode=monitoring.Mode(args["mode"]),
                provider=descriptor(args["cloud"]).provider_id_scheme,
                name=args.get("name", NAME),
                scraper=scraper,
                labels=args.get("labels", {}),
                runbooks=args.get("runbooks", RUNBOOKS),
            )
        )
        super().__init__("cloudcontroller:index:Monitoring", name, {**args}, opts)
        for manifest in made:
            _resource(manifest, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def _resource(manifest: Manifest, opts: pulumi.ResourceOptions) -> None:
    logical, kind = manifest["metadata"]["name"].removeprefix("system:"), manifest["kind"]
    if kind not in _KINDS:
        CustomResource(logical, manifest["apiVersion"], kind, manifest["spec"], manifest["metadata"], opts)
        return
    _KINDS[kind](logical, opts=opts, **arguments_of(manifest))
