"""The page that tells in what this controller differs from the Go controller on OpenStack, made of the tables that
tests hold.

    python -m tests.compatibility.openstack_page

writes it.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.compatibility.openstack_differences import DIFFERENCES
from tests.compatibility.openstack_recorded import GOES_ON, LEFT_OUT, PEER, REFUSED
from tests.compatibility.tables import table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility" / "openstack.md"

_HEAD = """\
<!-- Made by `python -m tests.compatibility.openstack_page`; change tests/compatibility/openstack_differences.py. -->
# OpenStack: what differs from the Go controller

`cloud-provider-openstack` (commit c453fb7c9bbb, after v1.36.0) was recorded once, unmodified, at the real Keystone,
Neutron and Octavia, in phases: creation of a Service, changes of its annotations, ports and nodes, changes by hand,
restarts, deletion. This controller is led through the same phases at the same services, with the same cloud.conf. After
each phase, what both left is compared field by field: load balancers, listeners, pools, members, health monitors,
floating IPs, how many ports and security groups there are, the Service's status, its annotations, the reasons of its
events, whether an error is the last word, and what a restart writes (nothing). Names, ids and addresses that are made
up, and the tags of owners, are each one's own.

Everything that is not in this table is the same. Its first column names the Service, and the phase after which the
difference appears; without a phase it is the creation. After a deletion, everything that differs is listed.

"""

_BEYOND = """
The recorded Nodes (two networks, a floating IP, the options of [Networking], OS_CCM_REGIONAL) get the same addresses in
the same order, the same type, zone and region, and the same provider IDs.

What the comparison cannot show:
- How many calls each takes: `make bench`, [benchmarks](../benchmarks.md).
- Traffic, amphorae, TLS, IPv6: the services here have none.
- `externalTrafficPolicy: Local` with nodes that have no pods, for the recorded Services have none: they got pods on all
  nodes here. The Go controller takes all nodes, this one those with ready pods
  (`tests/cloud_controller/clouds/openstack/octavia/test_build.py`).
- What becomes of a Node that is not ready and whose server runs, is SHUTOFF or is deleted, and of one whose name no
  server or two servers have. These were recorded too, but as calls alone, without the Nodes. Their tests are in
  `tests/cloud_controller/controllers` (`test_node.py`, `test_node_lifecycle.py`), and those of what Nova shows in
  `tests/cloud_controller/clouds/openstack/test_instances.py`.
- Another `--cluster-name`: here names come from `cluster-id`.
"""


def page() -> str:
    """The page's text."""
    return _HEAD + _counts() + table(DIFFERENCES) + _BEYOND


def _counts() -> str:
    refused = ", ".join(f"`{name}`" for name in REFUSED)
    ended = sum(len(PEER[name]["phases"]) - 1 for name in REFUSED)
    phases = sum(len(each["phases"]) for each in PEER.values()) - ended
    goes_on = ", ".join(f"`{name}`" for name in GOES_ON)
    left_out = ", ".join(f"`{name}`" for name in LEFT_OUT)
    found = (
        f"{phases} phases of {len(PEER)} scenarios. The creation fails, of one controller or both, in {refused}: the"
        f" {ended} later phases of these are not compared. It fails for a while in {goes_on}. {left_out} are not"
        " compared: they are others of these, recorded again with Octavia's own worker in place of a simple one."
    )
    return textwrap.fill(found, 120, break_on_hyphens=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
