"""Turns off the source/destination check of machines, which drops the traffic of pods that are routed to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from cloud_controller.cloud import CloudError, Unavailable
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.alicloud.instances import EcsInstances
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls, batches

_BATCH = 100
"""The most interfaces in one call."""


class SourceDestCheck:
    """The check of each machine's primary network interface; this process remembers which ones are off."""

    def __init__(self, client: Client, instances: EcsInstances, concurrently: ConcurrentCalls) -> None:
        self._client = client
        self._instances = instances
        self._concurrently = concurrently
        self._off: set[str] = set()

    def turn_off(self, machines: Collection[str]) -> Mapping[str, CloudError]:
        """Turn it off where it is on; return the machines where that failed. Raises CloudError if a read fails."""
        unknown = {*machines} - self._off
        interfaces = self._instances.primary_interfaces(unknown)
        machine_of = {interface: machine for machine, interface in interfaces.items()}
        shown = {
            machine_of[each["NetworkInterfaceId"]]: each
            for some in batches(sorted(machine_of), _BATCH)
            for each in self._client.pages(
                "ecs",
                "DescribeNetworkInterfaces",
                {"NetworkInterfaceId": some, "MaxResults": _BATCH},
                "NetworkInterfaceSets.NetworkInterfaceSet",
            )
        }
        on = [machine for machine, each in shown.items() if each.get("SourceDestCheck")]
        results = self._concurrently(partial(self._turn_off, interfaces[machine]) for machine in on)
        failed = {machine: error for machine, error in zip(on, results, strict=True) if error is not None}
        self._off |= shown.keys() - failed.keys()
        why = "Alibaba Cloud does not show the primary network interface of machine {}, whose check may be on"
        return failed | {each: Unavailable(why.format(each)) for each in unknown - shown.keys()}

    def _turn_off(self, interface: str) -> CloudError | None:
        parameters = {"NetworkInterfaceId": interface, "SourceDestCheck": False}
        try:
            self._client.call("ecs", "ModifyNetworkInterfaceAttribute", parameters, repeatable=True)
        except CloudError as error:
            return error
        return None
