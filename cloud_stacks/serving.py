"""Which catalogue judges each LoadBalancer Service of a plan: that of the cloud that makes its load balancer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pulumi_policy import PolicyCustomTimeouts, PolicyProviderResource, PolicyResource, PolicyResourceOptions

from cloud_controller import clouds
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_stacks.effects import SERVICE
from cloud_stacks.outcome import Resource
from policy.checklist.serving import Serving
from policy.objects import dig
from policy.rules import Stack
from policy.subjects import Subject, subjects

Json = Any
_COMPONENT: Final = "cloudcontroller:index:LoadBalancerService"


def catalogues(resources: Iterable[Resource]) -> dict[str, Catalogue]:
    """By the Services' URNs. A Service has none if nothing shows its cloud, or no controller here serves its class.

    A component says its cloud by an input, which policies don't see; the rest of the evidence is theirs.
    """
    there = [each for each in resources if each.op != "delete"]
    serving = Serving(Stack([part for each in there for part in _subjects(each, each.after)], {}, _ignore))
    said = {each.urn: each.after.get("cloud") for each in there if each.type == _COMPONENT}
    found = {}
    for service in there:
        if service.type == SERVICE and (cloud := _cloud(service, serving, said.get(service.parent))) is not None:
            of_class = dig(service.after, "spec", "loadBalancerClass")
            descriptor = clouds.descriptor(cloud)
            if of_class in (None, *descriptor.load_balancer_classes, *descriptor.default_classes):
                found[service.urn] = descriptor.catalogue.of_class(of_class)
    return found


def _cloud(service: Resource, serving: Serving, said: Json) -> str | None:
    """The name of a cloud that has controllers here."""
    # An annotation that is removed shows it as well.
    shown = (serving.cloud(each) for inputs in (service.after, service.before) for each in _subjects(service, inputs))
    names = (said, *(cloud.name for cloud in shown if cloud is not None))
    return next((name for name in names if name in clouds.names()), None)


def _subjects(resource: Resource, inputs: Mapping[str, Json]) -> Iterator[Subject]:
    provider = PolicyProviderResource("", {}, resource.provider, "")
    options = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
    policed = PolicyResource(resource.type, inputs, resource.urn, resource.name, options, provider, None, [], {})
    for made in subjects(resource.type, inputs, resource.name, {}, policed):
        yield made()


def _ignore(why: str) -> None:
    del why
