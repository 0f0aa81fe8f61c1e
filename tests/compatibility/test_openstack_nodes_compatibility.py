"""This controller gives the recorded Nodes the addresses, labels and provider IDs that the Go controller gave them.

The servers are Nova's recorded answers, with the name of their flavor, as the microversion that is asked for shows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from cloud_controller.cloud import Instance, InstanceRef
from cloud_controller.clouds.openstack.client import OpenStackClient
from cloud_controller.clouds.openstack.config import parse
from cloud_controller.clouds.openstack.instances import NovaInstances

RECORDED: Mapping[str, Any] = json.loads(Path(__file__).with_name("openstack_nodes_peer.json").read_text())
GLOBAL = (
    "[Global]\ncluster-id=peer\nauth-url=http://127.0.0.1/v3\nusername=u\npassword=p\ntenant-id=t\ndomain-id=default\n"
)


class Nova:
    """The part of the client that reads servers."""

    region = "RegionOne"

    def list(self, *_: str) -> list[Any]:
        return [*RECORDED["servers"].values()]


def seen(run: str, node: str) -> Instance:
    """The node's machine with the cloud config of this run: a list of options, or a variable of the environment."""
    regional = run == "OS_CCM_REGIONAL=true"
    options = "" if regional or run == "no [Networking]" else run.replace(", ", "\n")
    config = parse(f"{GLOBAL}[Networking]\n{options}\n")
    nova = NovaInstances(cast("OpenStackClient", Nova()), config.networking, regional=regional)
    ref = InstanceRef(node)
    found = nova.describe([ref])[ref]
    assert found is not None
    return found


@pytest.mark.parametrize("node", sorted(RECORDED["servers"]))
@pytest.mark.parametrize("run", sorted(RECORDED["runs"]))
def test_a_node_has_what_the_go_controller_gave_it(run: str, node: str) -> None:
    peer = RECORDED["runs"][run][node]

    ours = seen(run, node)

    assert ours.provider_id == peer["providerID"]
    assert [{"type": each.type, "address": each.address} for each in ours.addresses] == (peer["addresses"] or [])
    labels = peer["labels"]
    assert (ours.type, ours.zone, ours.region) == (
        labels["node.kubernetes.io/instance-type"],
        labels["topology.kubernetes.io/zone"],
        labels["topology.kubernetes.io/region"],
    )
