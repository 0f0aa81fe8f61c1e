"""As `cloud_environment`, on Alibaba Cloud: the stand-in, served over HTTP by this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import ClassVar

from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.clouds.alicloud.config import METADATA, AccessKey, Config, render
from cloud_controller.clouds.alicloud.names import VERSIONS
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.alicloud import machines
from local.alicloud.account import ACCESS_KEY, REGION, SECRET
from local.alicloud.cloud import AliCloud
from local.control_plane.control_plane import ControlPlane
from local.standin.actions import Call
from local.standin.faults import Fault
from tests.crash import alicloud_left
from tests.crash.cloud_environment import CloudEnvironment, Kind, KindName, Machine
from tests.crash.control_plane import undisturbed_control_plane
from tests.crash.daemon import Json

CLUSTER_ID, VPC = "c-1", "vpc-cluster"
VSWITCHES = {f"{REGION}-h": "vsw-h", f"{REGION}-k": "vsw-k"}
ROLE = "cloud-controller"

_PRODUCTS = {version: product for product, version in VERSIONS.items()}


@dataclass(frozen=True)
class Instance:
    """See `Machine`. Its kubelet gives it no provider ID."""

    id: str
    name: str
    address: str
    provider_id: None = None


class AliCloudEnvironment(CloudEnvironment):
    """One cluster on one account of the stand-in. `decide`: the fault that a call meets."""

    prefix = PREFIX
    kinds: ClassVar[Mapping[KindName, Kind]] = {
        "classic": Kind(),
        "network": Kind(
            {"zone-maps": ",".join(f"{zone}:{vswitch}" for zone, vswitch in VSWITCHES.items())},
            {"loadBalancerClass": "alibabacloud.com/nlb"},
        ),
    }

    def __init__(self, control_plane: ControlPlane, cloud: AliCloud, endpoint: str, directory: Path) -> None:
        super().__init__(control_plane, directory, cloud_name="alicloud", endpoint=endpoint, naming=operation)
        self.cloud = cloud
        self.decide: Callable[[Call], Fault | None] = lambda _: None
        with cloud.changing() as account:
            machines.add_vpc(account, VPC)
            for number, (zone, vswitch) in enumerate(VSWITCHES.items()):
                machines.add_vswitch(account, VPC, zone, f"192.168.{number}.0/24", vswitch)
        cloud.observe(self._meet)

    def cloud_config(self, endpoint: str) -> str:
        """See `CloudEnvironment.cloud_config`."""
        return self._config(endpoint, AccessKey(ACCESS_KEY, SECRET))

    def config_of_role(self, endpoint: str) -> str:
        """The same for a daemon that asks the metadata service for a key."""
        return self._config(endpoint, None)

    def _config(self, endpoint: str, key: AccessKey | None) -> str:
        endpoints = dict.fromkeys((*VERSIONS, METADATA), endpoint)
        return render(Config(CLUSTER_ID, REGION, VPC, access_key=key, endpoints=endpoints))

    def machine(self) -> Machine:
        """See `CloudEnvironment.machine`."""
        made = f"node-{next(self.names)}"
        with self.cloud.changing() as account:
            made_id = machines.add_instance(account, "vsw-h", name=made, tags={CLUSTER_TAG: CLUSTER_ID})
            (interface,) = (each for each in account.store.all(machines.ENI) if each["instance"] == made_id)
        return Instance(made_id, made, interface["addresses"][0])

    def end_machine(self, machine: Machine) -> None:
        """See `CloudEnvironment.end_machine`."""
        with self.cloud.changing() as account:
            if account.store.get(machines.INSTANCE, machine.id):
                machines.remove_instance(account, machine.id)

    def routes(self) -> Mapping[str, str]:
        """See `CloudEnvironment.routes`."""
        with self.cloud.changing() as account:
            return {each["cidr"]: each["hop"] for each in account.store.all(machines.ROUTE)}

    def checked(self) -> list[str]:
        """The machines whose source check drops what pods send."""
        with self.cloud.changing() as account:
            return [each["instance"] for each in account.store.all(machines.ENI) if each["source_check"]]

    def left(self) -> Json:
        """See `CloudEnvironment.left`."""
        with self.cloud.changing() as account:
            return alicloud_left.found(account)

    def remove_load_balancing(self) -> None:
        """See `CloudEnvironment.remove_load_balancing`."""
        self._remove(*alicloud_left.KINDS)

    def remove_routes(self) -> None:
        """See `CloudEnvironment.remove_routes`."""
        self._remove(machines.ROUTE)

    def _remove(self, *kinds: str) -> None:
        with self.cloud.changing() as account:
            for kind in kinds:
                for each in account.store.all(kind):
                    account.store.remove(kind, each["id"])

    def _meet(self, call: Call) -> None:
        if (fault := self.decide(call)) is not None:
            self.cloud.faults.add(fault)


@contextlib.contextmanager
def alicloud_environment(directory: Path) -> Iterator[AliCloudEnvironment]:
    """One, until the block ends."""
    cloud = AliCloud()
    with undisturbed_control_plane(directory / "control-plane") as control_plane, cloud.served() as endpoint:
        yield AliCloudEnvironment(control_plane, cloud, endpoint, directory)


def operation(path: str, headers: Message, _: bytes) -> str:
    """A proxy's naming: product and action; the metadata service is asked by path."""
    action = headers.get("x-acs-action")
    return f"{_PRODUCTS[headers['x-acs-version']]} {action}" if action else path
