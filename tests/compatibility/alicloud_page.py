"""The page that tells in what this controller differs from the Go controller on Alibaba Cloud, made of the tables that
tests hold.

    python -m tests.compatibility.alicloud_page

writes it.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.compatibility.alicloud_clb_differences import DIFFERENCES as OF_CLB
from tests.compatibility.alicloud_nlb_differences import DIFFERENCES as OF_NLB
from tests.compatibility.alicloud_nodes import PEER as OF_NODES_RECORDED
from tests.compatibility.alicloud_nodes_differences import DIFFERENCES as OF_NODES
from tests.compatibility.alicloud_recorded import LEFT_OUT, PEER, REFUSED
from tests.compatibility.tables import table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility" / "alicloud.md"

_HEAD = """\
<!-- Made by `python -m tests.compatibility.alicloud_page`; change tests/compatibility/alicloud_*_differences.py. -->
# Alibaba Cloud: what differs from the Go controller

The requests of `cloud-provider-alibaba-cloud` (commit eeb0ddc68) were recorded once, in phases: creation of a Service,
changes of its annotations, ports, pods and nodes, a restart, a node more and less, deletion. Its writes are sent to a
stand-in, and this controller is led through the same phases on another one. After each phase, what both left is
compared field by field: attributes, listeners, certificates, backends with their weights, tags, security groups, the
Service's status, whether an error was reported, and what a restart writes (nothing). The stand-in fills in the API's
defaults, so parameters are compared by what they set. Made-up names, ids and addresses and the tags of owners are each
one's own.

Everything that is not in these tables is the same. Their first column names the scenario, and the phase after which
the difference appears; without a phase it is the creation. After a deletion, everything that differs is listed.
"""

_CLB = """
## Classic load balancers (CLB)
"""

_MORE_OF_CLB = """
What the comparison cannot show; tests in `tests/cloud_controller/clouds/alicloud/clb` hold each:
- HTTPS without `cert-id` makes a listener without a certificate there, which the stand-in refuses; here it is an error
  before any call.
- ConnectionDrain is sent for UDP there, which the SDK does not know and the comparison leaves out; here it is reported
  as having no effect.
- A label of any node reconciles every Service there, with four calls each; here a settled Service costs none.
"""

_NLB = """
## Network load balancers (NLB)
"""

_MORE_OF_NLB = """
What the comparison cannot show; tests in `tests/cloud_controller/clouds/alicloud/nlb` hold each:
- The server group of a TCPSSL listener has protocol TCPSSL there, which the SDK's models lack; here TCP, with client
  addresses hidden, as they say. The comparison sends the Go controller's so too.
- `cert-id` is sent for every listener there, here for TCPSSL listeners alone. The comparison leaves it out.
- Security groups, IPv6 and cross-zone forwarding are set twice there, here once.
- A load balancer with IPv6 addresses lets every IPv6 client through `loadBalancerSourceRanges` there, here none but
  the named ones; and no listener exists before its clients are limited.
- sessionAffinity ClientIP has no effect there; here it selects the scheduler sch.
"""

_NODES = """
## Nodes and routes
Provider ID, labels, taints, addresses and the condition NetworkUnavailable of the recorded Nodes, the route table, the
source/destination checks and the writes of a restart, in {phases} phases of {scenarios} scenarios. Two scenarios are
not compared, for only their calls were recorded: 120 nodes with two route tables and none configured (no route there,
and none here), and restarts with 15 Services and 5 nodes, which only read.
"""


def page() -> str:
    """The page's text."""
    parts = (
        _HEAD,
        *(_CLB, _counts("clb"), table(OF_CLB), _MORE_OF_CLB),
        *(_NLB, _counts("nlb"), table(OF_NLB), _MORE_OF_NLB),
        *(_nodes(), table(OF_NODES, "Nodes")),
    )
    return "".join(parts)


def _counts(kind: str) -> str:
    names = [name for name in PEER if name.startswith(f"{kind}/")]
    refused = ", ".join(f"`{name}`" for name in REFUSED[kind])
    ended = sum(len(PEER[f"{kind}/{name}"]["phases"]) - 1 for name in REFUSED[kind])
    phases = sum(len(PEER[name]["phases"]) for name in names) - ended
    found = (
        f"{phases} phases of {len(names)} scenarios. The creation fails, of one controller or both, in {refused}: the"
        f" {ended} later phases of these are not compared."
    )
    for name, reason in LEFT_OUT.items():
        if name.startswith(f"{kind}/"):
            found += f" `{name.partition('/')[2]}` is not compared: {reason}."
    return textwrap.fill(found, 120, break_on_hyphens=False) + "\n"


def _nodes() -> str:
    scenarios = {name.partition(": ")[0] for name in OF_NODES_RECORDED}
    return _NODES.format(phases=len(OF_NODES_RECORDED), scenarios=len(scenarios))


if __name__ == "__main__":
    PAGE.write_text(page())
