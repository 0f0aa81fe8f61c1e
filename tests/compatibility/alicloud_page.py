"""The page that tells in what this controller differs from the Go controller on Alibaba Cloud, made of the tables that
tests hold.

    python -m tests.compatibility.alicloud_page

writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.compatibility.alicloud_clb_differences import DIFFERENCES as OF_CLB
from tests.compatibility.alicloud_clb_left import PEER as CLB_SERVICES
from tests.compatibility.alicloud_nlb_differences import DIFFERENCES as OF_NLB
from tests.compatibility.alicloud_nlb_left import PEER as NLB_SERVICES
from tests.compatibility.differences import Difference

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility" / "alicloud.md"

_HEAD = """\
<!-- Made by `python -m tests.compatibility.alicloud_page`; change tests/compatibility/alicloud_*_differences.py. -->
# Alibaba Cloud: what differs from the Go controller

The requests of `cloud-provider-alibaba-cloud` (commit eeb0ddc68) were recorded once. Those by which it creates a load
balancer are sent to a stand-in, and this controller gives the same Service to another one. What both leave is compared
field by field: attributes, listeners, certificates, backends with their weights, tags. The stand-in fills in the API's
defaults, so parameters are compared by what they set. Made-up names, ids and the tags of owners are each one's own.

Everything that is not in these tables is the same.
"""

_CLB = """
## Classic load balancers (CLB)
{count} Services.

| Services | field | the Go controller | this one | why |
|---|---|---|---|---|
"""

_AFTER_CREATION = """
### After the creation
What the Go controller does and this one does not, or does otherwise; tests in
`tests/cloud_controller/clouds/alicloud/clb` hold each.
- An annotation that disappears changes nothing there; here its default comes back, but for the tags of
  `additional-resource-tags`, which others may have added.
- While the hash in a label fits, it does not look at load balancer and listeners; here a change by hand is put right.
- A load balancer that was deleted by hand is only an error there; here it is made again.
- A changed certificate of `domain-extensions` is never applied there (the call lacks the id and has the old
  certificate).
- HTTPS without `cert-id` makes a listener without a certificate there; here it is an error.
- With `force-override-listeners` the user's listener is deleted with the Service there; here it is given back.
- `preserve-lb-on-delete` keeps the load balancer there, without protection, tags, listeners and groups; here it keeps
  everything but the owner's tags.
- On a reused load balancer, name, specification and charges are changed there; here only the Service's own parts are.
- `spec` without PayBySpec, `bandwidth` while traffic is paid and another vSwitch are passed over there; here they are
  an error, reported, and a new load balancer, as the plan says before.
- `vgroup-port`, `weight` and `ignore-weight-update` are honoured there; here they are reported as not offered.
- A label of any node reconciles every Service there, with four calls each; here a settled Service costs none.
"""

_NLB = """
## Network load balancers (NLB)
{count} Services.

| Services | field | the Go controller | this one | why |
|---|---|---|---|---|
"""

_AFTER_CREATION_OF_NLB = """
### Besides
What the Go controller does and this one does not, or does otherwise; tests in
`tests/cloud_controller/clouds/alicloud/nlb` hold each.
- The server group of a TCPSSL listener has protocol TCPSSL there, which the SDK's models lack; here TCP, with client
  addresses hidden, as they say.
- `cert-id` is sent for every listener there, here for TCPSSL listeners alone.
- A zone that `zone-maps` no longer names stays there; here it is left.
- From type Ip to Instance, a new group is made and another deleted at every reconcile there; here once, and the
  listener moves.
- A job that fails counts as done there; here it is an error, and what it should have done is planned again.
- Security groups, IPv6 and cross-zone forwarding are set twice there, here once.
- A load balancer with IPv6 addresses lets every IPv6 client through `loadBalancerSourceRanges` there, here none but
  the named ones; and no listener exists before its clients are limited.
- `preserve-lb-on-delete` keeps the load balancer there, without protection, tags, listeners and groups; here it keeps
  everything but the owner's tags.
- On a reused load balancer, name and tags are changed there; here only the Service's own parts are.
- `vgroup-port` and `ignore-weight-update` are honoured there; here they are reported as not offered.
- sessionAffinity ClientIP has no effect there; here it selects the scheduler sch.
"""


def page() -> str:
    """The page's text."""
    of_clb = _CLB.format(count=len(CLB_SERVICES)) + _rows(OF_CLB) + _AFTER_CREATION
    return _HEAD + of_clb + _NLB.format(count=len(NLB_SERVICES)) + _rows(OF_NLB) + _AFTER_CREATION_OF_NLB


def _rows(differences: Iterable[Difference]) -> str:
    return "".join(
        f"| {_code(each.services)} | {_code(each.fields)} | {each.peer} | {each.ours} | {each.reason} |\n"
        for each in differences
    )


def _code(patterns: str) -> str:
    return ", ".join(f"`{pattern}`" for pattern in patterns.split("|"))


if __name__ == "__main__":
    PAGE.write_text(page())
