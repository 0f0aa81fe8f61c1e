"""A Service of type LoadBalancer whose cloud settings are typed arguments instead of annotation texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import pulumi
from pulumi_kubernetes.core.v1 import Service, ServicePortArgsDict, ServiceSpecArgsDict
from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds import descriptor
from cloud_controller.controllers.service.address_changes import ANNOTATION
from cloud_controller.load_balancers.catalogue import Annotation, Catalogue

from . import clouds, inputs
from .address_change import View, address_hook
from .arguments import checked
from .load_balancer_service_args import LoadBalancerServiceArgs, PortArgs, ServingClusterArgs
from .service_address import ServiceAddress

__all__ = ["LoadBalancerService", "LoadBalancerServiceArgs", "PortArgs", "ServingClusterArgs"]

PROTOCOLS = ("TCP", "UDP")
POLICIES = ("Cluster", "Local")

PATIENCE = pulumi.CustomTimeouts(create="5m", update="5m", delete="5m")
"""Half of the Kubernetes provider's own: a wait this long usually means that something is missing."""


class LoadBalancerService(pulumi.ComponentResource):
    """A Service named as the component, ready once its load balancer has an address.

    Pass the CCM in `opts.depends_on`: a destroy then deletes the load balancer while the CCM still runs. For the same
    reason it must never have a `deleted_with`, nor inherit one from its parent: that would skip its deletion and LEAK
    THE LOAD BALANCER.
    A change that replaces the load balancer, and so its address, is a warning in the preview. With argument `cluster`,
    an update waits for the new address; with `opts.protect` too, such a change fails in the preview until
    `replace_address` acknowledges it.
    `opts.custom_timeouts` bounds the wait for its load balancer; 5 minutes if not given.
    Beside `address` it has `ports`, where the load balancer listens, and `key`, its Service's NAMESPACE/NAME.
    """

    address: pulumi.Output[str]
    """The load balancer's IP address, or its host name."""

    @inputs.naming_itself
    def __init__(self, name: str, args: LoadBalancerServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        args = checked(LoadBalancerServiceArgs, args)
        cloud = clouds.descriptor(args["cloud"])
        if "settings" in args:
            args["settings"] = checked(cloud.load_balancer_args, args["settings"], "settings")
        catalogue = descriptor(args["cloud"]).catalogue
        _check(name, args, opts)
        super().__init__("cloudcontroller:index:LoadBalancerService", name, dict(args), opts)
        of_class = args.get("load_balancer_class")
        if of_class is not None:
            served = args.get("served_classes", sorted(descriptor(args["cloud"]).load_balancer_classes))
            _check_class(of_class, served, inputs.component(self, name))
        spec: ServiceSpecArgsDict = {
            "type": "LoadBalancer",
            "selector": args["selector"],
            "ports": [_port(port) for port in args["ports"]],
        }
        if of_class is not None:
            spec["load_balancer_class"] = of_class
        ranges = args.get("source_ranges")
        if ranges is not None and (not inputs.is_known(ranges) or ranges):
            spec["load_balancer_source_ranges"] = ranges
        if "external_traffic_policy" in args:
            spec["external_traffic_policy"] = args["external_traffic_policy"]
        metadata: ObjectMetaArgsDict = {"name": name, "namespace": args.get("namespace", "default")}
        # An empty map is dropped by the Kubernetes provider's check; without one, inputs and state are the same.
        annotations = _annotations(inputs.component(self, name), catalogue, args)
        if "replace_address" in args:
            annotations[ANNOTATION] = args["replace_address"]
        if annotations:
            metadata["annotations"] = annotations
        view = _view(args)
        service = Service(
            name,
            metadata=metadata,
            spec=spec,
            opts=pulumi.ResourceOptions(
                parent=self,
                # A child inherits neither from its component; the order of a destroy needs the first.
                depends_on=opts.depends_on if opts else None,
                custom_timeouts=(opts and opts.custom_timeouts) or PATIENCE,
                # The API server refuses to change it, but the Kubernetes provider does not know that.
                replace_on_changes=["spec.loadBalancerClass"],
                delete_before_replace=True,
                hooks=pulumi.ResourceHookBinding(
                    before_update=[address_hook(name, catalogue, view, protect=bool(self._protect))]
                ),
            ),
        )
        self.address = service.status.apply(_address)
        self.key: pulumi.Output[str] = pulumi.Output.concat(args.get("namespace", "default"), "/", name)
        if view is not None:
            now = ServiceAddress(
                name,
                cloud=view.cloud,
                cluster_id=view.cluster_id,
                network_id=view.network_id,
                service=self.key,
                annotations=annotations,
                load_balancer_class=of_class,
                arguments=view.arguments,
                existing=view.existing,
                # There is nothing to protect: it has no object of its own.
                opts=pulumi.ResourceOptions(parent=self, depends_on=[service], protect=False),
            ).address
            # None where the resource is only recorded.
            self.address = pulumi.Output.all(self.address, now).apply(lambda found: found[1] or found[0])
        # Annotated here and not on the class, where the SDK would take it for the type of the input `ports`.
        self.ports: list[pulumi.Output[int]] = [pulumi.Output.from_input(port["port"]) for port in args["ports"]]
        self.register_outputs({"address": self.address, "ports": self.ports})


def _check(name: str, args: LoadBalancerServiceArgs, opts: pulumi.ResourceOptions | None) -> None:
    inputs.check_dns_label("name", name)
    if not args["ports"]:
        raise inputs.WrongInput("ports", "empty; allowed: at least one port")
    for index, port in enumerate(args["ports"]):
        inputs.check_port(f"ports[{index}].port", port["port"])
        protocol = port.get("protocol", "TCP")
        inputs.check(f"ports[{index}].protocol", protocol, ", ".join(PROTOCOLS), lambda v: v in PROTOCOLS)
    ranges = args.get("source_ranges", ())
    for index, source in enumerate(cast("Sequence[object]", ranges) if inputs.is_known(ranges) else ()):
        inputs.check_cidr(f"source_ranges[{index}]", source)
    policy = args.get("external_traffic_policy", "Cluster")
    inputs.check("external_traffic_policy", policy, ", ".join(POLICIES), lambda v: v in POLICIES)
    if opts and opts.deleted_with:
        why = "must not be set: it would skip the Service's deletion and leak its load balancer"
        raise inputs.WrongInput("opts.deleted_with", why)


def _check_class(of_class: pulumi.Input[str], served: Sequence[str], component: str) -> None:
    """Refuse a class that no controller of the cluster serves: the Service would wait for an address without end."""
    if isinstance(of_class, str):
        _require_served(served, component, of_class)
    else:
        inputs.later(of_class, partial(_require_served, served, component))


def _require_served(served: Sequence[str], component: str, of_class: str, secret: bool = False) -> None:
    if of_class not in served:
        shown = "the secret value" if secret else repr(of_class)
        why = f"{shown}: no controller of the cluster serves this class, so the Service would never get an address"
        allowed = ", ".join([*served, "not set"])
        advice = "to use the class of another controller, add it to served_classes"
        refused = inputs.WrongInput("load_balancer_class", f"{why}; allowed: {allowed}; {advice}")
        refused.component = component
        raise refused


def _view(args: LoadBalancerServiceArgs) -> View | None:
    """How to look at the cluster, if the program says which it is."""
    if "cluster" not in args:
        return None
    cluster = args["cluster"]
    return View(
        args["cloud"],
        cluster["cluster_id"],
        cluster["network_id"],
        cluster.get("existing", False),
        cluster.get("arguments", ()),
        pulumi.Config(),
    )


def _port(port: PortArgs) -> ServicePortArgsDict:
    protocol = port.get("protocol", "TCP")
    name = pulumi.Output.all(protocol, port["port"]).apply(lambda values: f"{values[0].lower()}-{int(values[1])}")
    return {
        "name": port.get("name", name),
        "port": port["port"],
        "target_port": port.get("target_port", port["port"]),
        "protocol": protocol,
    }


def _annotations(component: str, catalogue: Catalogue, args: LoadBalancerServiceArgs) -> dict[str, pulumi.Input[str]]:
    """Settings as annotations, then the raw ones; plain values are checked now, outputs when they are known."""
    annotations: dict[str, pulumi.Input[str]] = {}
    of_class = args.get("load_balancer_class")
    of_kind = catalogue.of_class(of_class) if of_class is None or isinstance(of_class, str) else catalogue
    for argument, value in args.get("settings", {}).items():
        path = f"settings.{argument}"
        stem = of_kind.by_argument[argument]
        members = _refusing(path, lambda stem=stem, value=value: stem.given(value))
        for entry, of in members:
            if inputs.is_known(of):
                annotations[entry.name] = _refusing(path, lambda entry=entry, of=of: entry.to_text(of))
            else:
                annotations[entry.name] = inputs.later(of, partial(_text, entry, path, component))
    annotations |= args.get("annotations", {})
    known = {name: str(text) for name, text in annotations.items() if inputs.is_known(text)}
    # Together: an annotation that this cloud does not know may be refused for want of one that it does.
    if len(known) == len(annotations):
        _refusing(None, lambda: of_kind.parse(known))
        return annotations
    for each in of_kind.checks(of_kind.meant(known)):
        _refusing(None, each.run)
    inputs.later(annotations, partial(_together, of_kind, component))
    return annotations


def _text(entry: Annotation, path: str, component: str, value: Any, secret: bool) -> str:
    return str(_refusing(path, lambda: entry.to_text(value), component, secret))


def _together(catalogue: Catalogue, component: str, annotations: Mapping[str, Any], secret: bool) -> None:
    texts = {name: str(text) for name, text in annotations.items() if text is not None}
    _refusing(None, lambda: catalogue.parse(texts), component, secret)


def _refusing(path: str | None, make: Any, component: str = "", secret: bool = False) -> Any:
    """What `make` returns; its InvalidConfiguration becomes a WrongInput of `path`, and of `component` if given.

    Without its reason, which shows the value, where that is `secret`.
    """
    try:
        return make()
    except InvalidConfiguration as error:
        path = path or f"annotations[{error.field.removeprefix('annotation ')}]"
        allowed = f"; allowed: {error.allowed}" if error.allowed else ""
        refused = inputs.WrongInput(path, f"{'the secret value is refused' if secret else error.why}{allowed}")
        refused.component = component
        raise refused from None


def _address(status: Any) -> str:
    ingress = status.load_balancer.ingress if status and status.load_balancer else None
    if not ingress:
        raise ValueError("the Service is ready, but its status has no load balancer address")
    return str(ingress[0].ip or ingress[0].hostname)
