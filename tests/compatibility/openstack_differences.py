"""In what this controller leaves load balancers, or tells of Services, otherwise than the Go controller on purpose."""

from __future__ import annotations

from tests.compatibility.differences import Difference
from tests.compatibility.openstack_others_differences import OF_OTHERS

_EFFECT = "a setting that is accepted must have its effect"
_EARLY = "what cannot work is refused before anything is made"
_NOTHING = "nothing has changed"
_TELLS = "a setting that cannot be followed is an error of the Service"
_ENSURES = "events/EnsuringLoadBalancer|events/EnsuredLoadBalancer"
_REFUSES = f"error|{_ENSURES}|events/SyncLoadBalancerFailed"
_MADE = "listener tcp:80|load balancer|load balancers|pool tcp:80|VIP ports"

DIFFERENCES: tuple[Difference, ...] = (
    # ------------------------------------------------------------------------------------------------- of every Service
    Difference(
        "*",
        "annotations written",
        "writes the load balancer's ID and address into annotations, which sets off a second reconcile",
        "writes no annotations; the status has the address",
        "annotations are what people want, and each creation is reconciled once",
    ),
    Difference(
        "*: restart",
        _ENSURES,
        "reports at each start that it ensures each load balancer",
        "reports nothing",
        _NOTHING,
    ),
    Difference(
        "lb-method: restart|tcp-udp: restart",
        "events/UpdatedLoadBalancer",
        "sometimes updates each Service's nodes at a start, beside ensuring it",
        "reads once",
        _NOTHING,
    ),
    Difference(
        "*",
        "events/Waiting",
        "waits for Octavia on a worker, in silence",
        "reports that Octavia is at work, and serves other Services meanwhile",
        "a load balancer that takes long must not hold up the others",
    ),
    Difference(
        "*: touched|*: touched after that|*: an annotation that means nothing|source-ranges: turned round",
        _ENSURES,
        "reads each load balancer again at any change of its Service, and reports it",
        "reports nothing",
        _NOTHING,
    ),
    Difference(
        "default-external: node3 added without an address|default-external: deletion",
        "events/UpdatedLoadBalancer",
        "reports an update for a node that has no address yet",
        "reports nothing",
        _NOTHING,
    ),
    Difference(
        "class-unknown|floating-subnet-tags-none|proxy-protocol-v2|tls-ref|xff-and-proxy"
        "|floating-subnet-id: a subnet of another network|shared-conflict: create *"
        "|lb-error: the load balancer went to ERROR; touched",
        "events/EnsuringLoadBalancer",
        "reports that it ensures the load balancer, and then the error",
        "reports the error alone",
        "nothing is begun",
    ),
    Difference(
        "shared-conflict: delete *",
        "events/DeletingLoadBalancer|events/DeletedLoadBalancer",
        "reports the deletion of a load balancer that the Service never had",
        "reports nothing",
        "there is nothing to delete",
    ),
    # ------------------------------------------------------------------------------------------- networks and addresses
    Difference(
        "floating-network-empty|floating-network-found",
        "refused",
        "takes one of two external networks",
        "names both, and asks which",
        "which network a Service is reachable from must not be chance",
    ),
    Difference(
        "floating-subnet-tags-none",
        _MADE,
        "makes the load balancer, and then finds no subnet for its floating IP, for good",
        "makes nothing",
        _EARLY,
    ),
    Difference(
        "floating-network-id: another *|floating-subnet-id: another *|class-dmz: class silver",
        "floating IP/network|floating IP/subnet",
        "ignores another floating network, subnet or class once there is a floating IP",
        "gives the load balancer another floating IP",
        _EFFECT,
    ),
    Difference(
        "loadbalancerip: another free floating IP",
        "floating IP/port|floating IP 2/port|status/loadbalancerip",
        "ignores another address",
        "moves the load balancer to it, and frees the old one",
        _EFFECT,
    ),
    Difference(
        "loadbalancerip-internal: another address",
        _REFUSES.replace("events/EnsuringLoadBalancer|", ""),
        "ignores another address",
        "reports that the address of an internal load balancer stays",
        _TELLS,
    ),
    Difference(
        "internal-conf",
        "events/NotOffered",
        "passes over the annotation false where the cloud config says internal-lb",
        "passes over it too, and says so",
        "a setting without effect is told",
    ),
    Difference(
        "network-id|subnet-id|serial-calls",
        "pool tcp:*/members' subnets",
        "leaves the subnet of members out, or takes the load balancer's own",
        "takes the subnet that has the node's address",
        "Octavia reaches a member in another network only if it knows its subnet",
    ),
    Difference(
        "member-subnet-id: another member subnet",
        "pool tcp:80/members' subnets",
        "ignores another member subnet",
        "moves the listener to a new pool in that subnet",
        _EFFECT,
    ),
    # --------------------------------------------------------------------------------------------------------- settings
    Difference(
        "flavor-id: removed",
        "load balancer/flavor_id",
        "keeps the flavor that the Service no longer names",
        "makes a new load balancer, which the plan shows before, and deletes the old one",
        _EFFECT,
    ),
    Difference(
        "session-affinity: None",
        "pool tcp:80/session_persistence",
        "leaves the affinity that the Service no longer asks for",
        "takes it off",
        _EFFECT,
    ),
    Difference(
        "x-forwarded-for: off",
        "error|events/EnsuredLoadBalancer|events/SyncLoadBalancerFailed|listener tcp:80/*|pool tcp:80/protocol",
        "asks for a second listener on the port, which Octavia refuses for good",
        "deletes the listener and makes it again",
        _EFFECT,
    ),
    Difference(
        "x-forwarded-for: node3 added",
        _ENSURES,
        "happened to be reconciled twice",
        "reports the node alone",
        _NOTHING,
    ),
    Difference(
        "health-monitor: timeout above delay",
        f"{_REFUSES}|monitor tcp:80/timeout",
        "accepts a timeout that is longer than the delay",
        "refuses it; the monitor stays as it was",
        "Octavia's documentation forbids it",
    ),
    Difference(
        "health-monitor: off",
        "monitor tcp:80",
        "takes the monitor off",
        "still refuses the timeout, and changes nothing",
        "the Service would be refused again once the monitor is on",
    ),
    Difference(
        "lb-method: FASTEST",
        f"{_REFUSES}|events/LoadBalancerLbMethodUnknown",
        "sends a method that Octavia does not know, reports that, and then that all is well",
        "reports an error with those that are allowed",
        _TELLS,
    ),
    Difference(
        "timeouts: not a number",
        f"{_REFUSES}|listener tcp:80/timeout_client_data",
        "takes the default in place of a value that is no number",
        "reports an error; the listener stays as it was",
        _TELLS,
    ),
    Difference(
        "node-selector: env alone",
        "events/UpdatedLoadBalancer",
        "reports changed members as an ensured load balancer",
        "reports that the hosts have changed",
        "nothing else has",
    ),
    Difference(
        "node-selector: node1 gets env=prod",
        "pool tcp:80/members",
        "sees a node's new label at the next change of the Service",
        "sees it at once",
        "the change of a Node is an event",
    ),
    Difference(
        "node-selector: no node fits",
        "events/UnAvailableLoadBalancer",
        "reports nothing",
        "warns that the load balancer has no members",
        "clients get no answer",
    ),
    Difference(
        "no-node-ports",
        "refused",
        "makes a load balancer without members",
        "reports an error",
        _TELLS,
    ),
    Difference(
        "proxy-protocol-v2",
        "VIP ports",
        "leaves a port in Neutron at each try, because Octavia makes it before it refuses the load balancer",
        "sends nothing",
        _EARLY,
    ),
    Difference(
        "proxy-ingress-hostname",
        "refused",
        "shows a made-up host name in the status of a Service with the PROXY protocol",
        "refuses enable-ingress-hostname in the cloud config",
        "kube-proxy's own answer is ipMode Proxy in the status, as here; annotation hostname sets a name",
    ),
    Difference(
        "security-groups: node3 added|security-groups: node3 removed",
        f"{_ENSURES}|events/UpdatedLoadBalancer",
        "reports changed hosts",
        "reports an ensured load balancer",
        "more than members changes: the group of their ports too",
    ),
    Difference(
        "security-groups: node3 removed",
        "security group/nodes",
        "leaves the group on the port of a node that is a member no more",
        "takes it off",
        "nobody is to reach node ports that serve nothing",
    ),
    Difference(
        "security-groups-off: restart",
        "writes",
        "removes the group",
        "removes the group, and the tag that says there is one",
        "a load balancer without the tag costs no search for groups",
    ),
    *OF_OTHERS,
)
