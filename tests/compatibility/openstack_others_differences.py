"""In what this controller differs from the Go controller on purpose where somebody else changed or shares a load
balancer.
"""

from __future__ import annotations

from tests.compatibility.differences import Difference

_MENDS = "a load balancer is what its Service says, whoever changed it"
_CAUSED = "follows from what else differs"
_ENSURES = "events/EnsuringLoadBalancer|events/EnsuredLoadBalancer"
_MADE = "listener tcp:80|load balancer|load balancers|pool tcp:80|VIP ports"

OF_OTHERS: tuple[Difference, ...] = (
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
