"""The cluster that a site has from its beginning: a network, machines in two zones, and a control plane outside them.

Stacks find it as they find a cluster that somebody else made.
"""

from __future__ import annotations

from typing import Final

from local.addresses import AddressBlock
from local.alicloud import machines
from local.alicloud.account import Account
from local.alicloud.machines import INSTANCE, VPC
from local.alicloud.sts import add_role

CLUSTER_ID: Final = "c-site"
NETWORK_ID: Final = "vpc-site"
WORKERS: Final = ("worker-0", "worker-1", "worker-2")
ROLE_NAME: Final = "worker"
"""The RAM role of the machines; it may do everything, as no stack manages it."""

_ZONES: Final = ("h", "k")


def prepare(account: Account, block: AddressBlock) -> None:
    """Put the network and the machines of the cluster into an account that does not have them."""
    if account.store.get(VPC, NETWORK_ID) is not None:
        return
    network = block.network(0).machines
    machines.add_vpc(account, NETWORK_ID, str(network))
    parts = network.subnets(new_prefix=20)
    subnets = [
        machines.add_vswitch(account, NETWORK_ID, f"{account.region}-{zone}", str(part), id=f"vsw-{zone}")
        for zone, part in zip(_ZONES, parts, strict=False)
    ]
    for number, name in enumerate(WORKERS):
        tags = {"kubernetes.io/cluster": CLUSTER_ID}
        machines.add_instance(
            account, subnets[number % len(subnets)], id=f"i-site{number}", name=name, tags=tags, role=ROLE_NAME
        )
    add_role(account, ROLE_NAME, ["ecs"])


def wanted_machines(account: Account) -> dict[str, dict[str, object]]:
    """What boots the instances that are Running (`machine.json`), by their ids. Pure."""
    found = {}
    for instance in account.store.all(INSTANCE):
        eni = account.store.get(machines.ENI, instance["enis"][0])
        if instance["status"] == "Running" and eni is not None:
            found[instance["id"]] = {
                "id": instance["id"],
                "node_name": machines.node_name(instance),
                "address": eni["addresses"][0],
                "size": {"cpus": 4, "memory": "16Gi"},
                "role": "worker",
            }
    return found
