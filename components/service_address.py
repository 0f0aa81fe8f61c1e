"""The dynamic resource ServiceAddress: a Service's address as it is now, and after an update the new one.

The Kubernetes provider takes the address that a Service has when it is updated; a change that replaces the load
balancer gives it another one only later. `update` waits for that. `diff` compares with the Service as it is, so that
outputs also show what others changed.

As with `CloudController`, the provider is unpickled by reference: keep it importable here, without attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.dynamic import (
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    UpdateResult,
)

from . import cluster_access
from .dynamic_provider import DynamicProvider
from .placeholder import PlaceholderSecrets

if TYPE_CHECKING:
    from .cluster_plan import World

Properties = dict[str, Any]

DEADLINE = 300.0
"""Seconds for the daemon to give the Service its new address."""

_REPLACING = ("cloud", "cluster_id", "network_id", "service")


class ServiceAddressProvider(DynamicProvider):
    """See the module. It changes nothing."""

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        replaced = [name for name in _REPLACING if _olds.get(name) != _news.get(name)]
        return DiffResult(bool(replaced) or _may_move(_olds, _news) or self._has_moved(_olds), replaced)

    def create(self, props: Properties) -> CreateResult:
        return CreateResult(props["service"], {**props, "address": self._address(props)})

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        from . import service_plan

        if not _may_move(_olds, _news):
            return UpdateResult({**_news, "address": self._address(_news)})
        options = service_plan.options_of(_news["cloud"], _news.get("arguments") or ())
        found = service_plan.settled_address(self._world(_news), _news["service"], options, DEADLINE, _report)
        return UpdateResult({**_news, "address": found})

    def read(self, id_: str, props: Properties) -> ReadResult:
        from cloud_controller.cloud import NotFound
        from cloud_controller.kube import NotFoundError

        try:
            return ReadResult(id_, {**props, "address": self._address(props)})
        except (NotFound, NotFoundError):
            return ReadResult(None, {})

    def _has_moved(self, olds: Properties) -> bool:
        """Whether the Service has another address than the last one; False where that cannot be seen."""
        from cloud_controller.cloud import CloudError
        from cloud_controller.kube import ApiError, KubeconfigError

        with suppress(PlaceholderSecrets, CloudError, ApiError, KubeconfigError):
            return self._address(olds) != olds.get("address")
        return False

    def _address(self, props: Properties) -> str:
        from . import service_plan

        return service_plan.address_of(service_plan.read(self._world(props), props["service"]))

    def _world(self, props: Properties) -> World:
        from .cluster_plan import World

        cloud_config = cluster_access.cloud_config(self._config, props)
        return World.open(props["cloud"], cloud_config, cluster_access.own_kubeconfig(self._config, props))


def _may_move(olds: Properties, news: Properties) -> bool:
    """Whether the annotations ask for another address, or acknowledge a change that was held."""
    from cloud_controller import clouds
    from cloud_controller.controllers.service.address_changes import ANNOTATION

    from .address_change import texts

    before = texts(olds.get("annotations"))
    after = texts(news.get("annotations"), before)
    of_class = news.get("load_balancer_class")
    catalogue = clouds.descriptor(news["cloud"]).catalogue.of_class(of_class)
    return before.get(ANNOTATION) != after.get(ANNOTATION) or bool(catalogue.readdressing(before, after, of_class))


def _report(text: str) -> None:
    # The engine shows what the provider's process prints while the step runs; a provider has no other way to log.
    print(f"ServiceAddress: {text}", flush=True)


class ServiceAddress(Resource, module="cloudcontroller", name="ServiceAddress"):
    """A Service's address; type `…dynamic/cloudcontroller:ServiceAddress`. Depends on the Service (`opts.depends_on`).

    `service` is NAMESPACE/NAME; `annotations` are the declared ones, whose change may bring another address;
    `arguments` are flags of our daemon, as its `CloudControllerManager` has them.
    """

    # Loosely typed: the SDK checks what an older state holds against it.
    address: pulumi.Output[Any]
    """An IP address or a host name."""

    def __init__(
        self,
        resource_name: str,
        *,
        cloud: str,
        cluster_id: pulumi.Input[str],
        network_id: pulumi.Input[str],
        service: pulumi.Input[str],
        annotations: Mapping[str, pulumi.Input[str]],
        load_balancer_class: pulumi.Input[str] | None = None,
        arguments: Sequence[str] = (),
        existing: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "cloud": cloud,
            "cluster_id": cluster_id,
            "network_id": network_id,
            "service": service,
            "annotations": dict(annotations),
            "load_balancer_class": load_balancer_class,
            "arguments": list(arguments),
            "existing": existing or None,
            "address": None,
        }
        super().__init__(ServiceAddressProvider(), resource_name, props, opts)
