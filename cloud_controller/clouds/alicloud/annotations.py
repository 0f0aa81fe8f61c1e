"""The annotations of both kinds of load balancers; the Service's class selects the kind."""

from __future__ import annotations

from cloud_controller.clouds.alicloud.clb.annotations import CLB
from cloud_controller.clouds.alicloud.nlb.annotations import NLB
from cloud_controller.load_balancers.catalogue import Catalogue

CATALOGUE = Catalogue.joined(CLB, NLB)

CLASSES = frozenset(each for kind in CATALOGUE.kinds for each in kind.classes if each is not None)
"""The values of `spec.loadBalancerClass` that this controller serves where Alibaba Cloud's own does not run."""
OWN_CLASSES = frozenset(each for each in CLASSES if each.startswith("cloud-controller/"))
"""Those that it always serves: Alibaba Cloud's own controller does not know them."""
