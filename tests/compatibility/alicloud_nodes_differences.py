"""In what this controller leaves Nodes and routes otherwise than the Go controller on purpose, for the page."""

from __future__ import annotations

from tests.compatibility.differences import Difference

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "*",
        "node-*/labels/alibabacloud.com/instance-type-family",
        "sets no such label",
        "sets it",
        "the requirements list it",
    ),
    Difference(
        "*",
        "node-4/labels/node.alibabacloud.com/nodepool-id|node-4/labels/alibabacloud.com/nodepool-id",
        "sets node.alibabacloud.com/nodepool-id",
        "sets alibabacloud.com/nodepool-id",
        "the requirements say so, and ACK's own node pools have that label",
    ),
    Difference(
        "*",
        "node-*/addresses/first",
        "puts public addresses first",
        "puts private addresses first",
        "many programs take the first address, and inside the cluster the private one is reachable",
    ),
    Difference(
        "*",
        "node-1/addresses/InternalIP",
        "lists IPv6 addresses if a feature gate is on",
        "lists them",
        "the requirements list them",
    ),
    Difference(
        "*",
        "node-5/addresses/InternalIP|node-1/addresses/InternalIP",
        "lists secondary addresses of an interface, which the recorded cloud gave as the instance's",
        "lists the primary address",
        "secondary addresses are pods' with plugins that give pods addresses of the VPC",
    ),
    Difference(
        "*",
        "node-3/addresses/Hostname",
        "drops the host name of a node with alpha.kubernetes.io/provided-node-ip",
        "keeps it",
        "upstream's controllers keep it, and the kubelet would add it again",
    ),
    Difference(
        "init-no-routes: five-nodes|init-and-routes: node-8: no pod CIDR",
        "checks/*",
        "turns the source/destination check off for every machine",
        "turns it off for machines that get a route",
        "without a route, no foreign addresses reach the machine",
    ),
    Difference(
        "init-and-routes: node-6: no provider ID",
        "node-6/*|routes/10.0.6.0/24|checks/eni-node6",
        "never initialises a node without a provider ID",
        "finds its machine by the node's name among the cluster's machines",
        "a kubelet does not know its provider ID unless somebody tells it",
    ),
    Difference(
        "init-and-routes: node-7: instance unknown to the cloud",
        "node-7/NetworkUnavailable|routes/10.0.7.0/24",
        "makes a route to a machine that the cloud does not know, and calls the network available",
        "makes none, and calls it unavailable",
        "no packet arrives there",
    ),
    Difference(
        "init-and-routes: node-8: no pod CIDR",
        "node-8/NetworkUnavailable",
        "calls the network of a node without a pod CIDR unavailable",
        "says nothing of it",
        "such a node's network is not made of routes",
    ),
    Difference(
        "init-and-routes: node-9: *",
        "node-9/*",
        "initialises a node with the label exclude-node, and gives it no route",
        "leaves it alone, its taint too",
        "the label says that the node is not this controller's",
    ),
    Difference(
        "init-and-routes: node-11: *|init-and-routes: node-12: *",
        "node-11/*|node-12/*|routes/10.0.11.0/24|routes/10.0.12.0/24|checks/eni-node7",
        "initialises a node whose provider ID names another region, or is none of this cloud's forms, and makes its"
        " route again at every period",
        "reports an error and changes nothing",
        "a machine of another region has no route here; asked for here it would be gone, and its node deleted",
    ),
    Difference(
        "init-and-routes: label-change",
        "node-1/labels/topology.kubernetes.io/zone",
        "puts labels right at its start and every five minutes",
        "puts them right at once",
        "the change of a Node is an event",
    ),
    Difference(
        "init-and-routes: node-deleted-after-restart",
        "routes/10.0.5.0/24",
        "leaves the route of a node that goes after a restart",
        "removes it",
        "the requirements say so",
    ),
    Difference(
        "init-and-routes: instance-gone-ready",
        "routes/10.0.4.0/24",
        "leaves the route to a machine that is gone, for good",
        "removes it, even while the Node is there",
        "no packet arrives there, and another machine may need the range",
    ),
)
