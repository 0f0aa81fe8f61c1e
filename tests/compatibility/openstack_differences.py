"""In what this controller leaves load balancers, or tells of Services, otherwise than the Go controller on purpose."""

from __future__ import annotations

from tests.compatibility.differences import Difference

_EFFECT = "a setting that is accepted must have its effect"
_MENDS = "a load balancer is what its Service says, whoever changed it"
_EARLY = "what cannot work is refused before anything is made"
_NOTHING = "nothing has changed"
_CAUSED = "follows from what else differs"
_TELLS = "a setting that cannot be followed is an error of the Service"
_NOT_HERE = (
    "[not supported](../clouds/openstack-load-balancers.md#refused-by-name); a setting without effect is refused"
)
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
        "loadbalancerip-unknown|quota-floating-ip",
        "events/EnsuredLoadBalancer",
        "reports the floating IP's error alone",
        "reports that the load balancer is made, and then the floating IP's error",
        "the load balancer is there, and its address is still missing",
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
        "security-groups|security-groups-local|security-groups-off",
        "refused",
        "makes a security group for each Service",
        "refuses manage-security-groups in the cloud config",
        _NOT_HERE,
    ),
    # ----------------------------------------------------------------------------------------- changed by somebody else
    Difference(
        "drift: a listener was changed (limit, CIDRs, name, off); touched",
        "listener tcp:80/admin_state_up",
        "leaves a listener switched off",
        "switches it on",
        _MENDS,
    ),
    Difference(
        "drift: a member was switched off (weight 0); touched",
        "pool tcp:80/members switched off|pool tcp:80/members' weights",
        "leaves a member switched off, and its weight",
        "switches it on, with the weight that it should have",
        _MENDS,
    ),
    Difference(
        "drift: a member was deleted; touched",
        f"{_ENSURES}|events/UpdatedLoadBalancer",
        "reports changed members as an ensured load balancer",
        "reports that the hosts have changed",
        "nothing else has",
    ),
    Difference(
        "drift: a listener was deleted; touched",
        "unused pools",
        "makes another pool; the old one stays beside it",
        "gives the new listener the pool that is there",
        "nothing unused is left behind",
    ),
    Difference(
        "drift: a foreign listener without tags was added; touched",
        f"{_ENSURES}|listener tcp:9999",
        "deletes the listener of somebody else",
        "leaves it",
        "nothing that is not the Service's own is changed",
    ),
    Difference(
        "drift: the load balancer and the floating IP were deleted; touched",
        "error|events/EnsuredLoadBalancer|events/SyncLoadBalancerFailed|floating IP|floating IPs|listener *"
        "|load balancer|load balancers|monitor *|pool *|VIP ports",
        "reports an error for good, until the annotation load-balancer-id is taken away",
        "makes both again",
        _MENDS,
    ),
    Difference(
        "drift: load-balancer-id taken away",
        _ENSURES,
        "makes the load balancer again",
        "has made it already",
        _CAUSED,
    ),
    Difference(
        "drift: deletion",
        "events/DeletingLoadBalancer|events/DeletedLoadBalancer",
        "had reported too many events of this Service for any more",
        "reports the deletion",
        _CAUSED,
    ),
    Difference(
        "lb-error-at-creation",
        f"{_MADE}|floating IP|floating IPs",
        "deletes a new load balancer that goes to ERROR, and makes another at each try",
        "keeps it, and reports what helps",
        "each try would cost machines and hide the cause; deleted by hand, it is made again",
    ),
    Difference(
        "lb-error-at-creation: restart|lb-error-at-creation: port 80 becomes 81",
        "writes|listener tcp:81|pool tcp:81",
        "makes another load balancer",
        "changes nothing of a load balancer in ERROR",
        _CAUSED,
    ),
    Difference(
        "lb-error: node3 added",
        "events/SyncLoadBalancerFailed",
        "reports the failed update twice, by two reasons",
        "reports it once",
        "it is one failure",
    ),
    Difference(
        "cluster-renamed: restart",
        "writes|events/LoadBalancerRename",
        "renames everything after a restart with another --cluster-name",
        "has no such flag: names come from cluster-id, which stays",
        "the tags by which a cluster knows its own must not change",
    ),
    # ----------------------------------------------------------------------------------------- one for several Services
    Difference(
        "load-balancer-id",
        "error|events/EnsuredLoadBalancer|events/SyncLoadBalancerFailed|status/load-balancer-id",
        "makes listener, pool and members, and then fails, because the load balancer has no floating IP",
        "shows the address that the load balancer has",
        "whose load balancer it is decides on its addresses",
    ),
    Difference(
        "load-balancer-id: a floating IP was put on its VIP by hand, Service touched",
        "load balancer/owned|events/EnsuringLoadBalancer",
        "puts its tag on a load balancer of somebody else",
        "only reads it; its owner allows that by a tag (cloud-controller/shared-with), as was done here",
        "a Service must not take any load balancer of the project whose ID it knows",
    ),
    Difference(
        "shared: create a third shared-c",
        "error|events/EnsuredLoadBalancer|events/SyncLoadBalancerFailed|listener tcp:82|pool tcp:82|status/shared-c",
        "refuses a third Service on a load balancer (max-shared-lb)",
        "serves it; max-shared-lb is ignored",
        "only the quota limits the listeners of a load balancer",
    ),
)
