"""In what this controller leaves CLBs otherwise than the Go controller on purpose: the CLB table of the page."""

from __future__ import annotations

from tests.compatibility.differences import Difference

_EFFECT = "a setting that is accepted must have its effect"
_FOLLOWS = "a load balancer follows what its Service says now, whatever it said before"
_USERS = "a reused load balancer is its user's, but for the Service's own listeners"

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "*",
        "listener */Scheduler",
        "round robin (rr) by default",
        "weighted round robin (wrr) by default",
        "the requirements say so, and rr ignores the weights that externalTrafficPolicy Local needs; with equal weights"
        " both are the same",
        values=("rr", "wrr"),
    ),
    Difference(
        "spec-only",
        "refused",
        "sends the specification with PayByCLCU, where it has no effect",
        "refuses it and names the annotation that gives it an effect",
        _EFFECT,
    ),
    Difference(
        "acl: off",
        "listener */AclId|listener */AclType",
        "sends both lists with the control off",
        "sends only that the control is off",
        "the stand-in takes one list and refuses two while the control is on; while it is off, no list has an effect",
    ),
    Difference(
        "additional-tags: changed",
        "load balancer/tags/*",
        "removes tags that the annotation no longer has, unless all are gone",
        "leaves them",
        "others may have set a tag of that name since, which nobody can see",
    ),
    Difference(
        "address-type-change: intranet|intranet-fixed-ip: another address|ipv6: to ipv4",
        "error|load balancer/address*|load balancer/ip_version|load balancer/vswitch|load balancer/master_zone",
        "refuses the change in an event",
        "makes a new load balancer, which the plan shows before, and deletes the old one",
        _EFFECT,
    ),
    Difference(
        "intranet-vswitch: vswitch changed",
        "load balancer/vswitch|load balancer/master_zone",
        "passes over another vSwitch",
        "makes a new load balancer, which the plan shows before, and deletes the old one",
        _EFFECT,
    ),
    Difference(
        "intranet-vswitch: bandwidth on an intranet CLB",
        "error",
        "passes over it",
        "reports an error",
        _EFFECT,
    ),
    Difference(
        "resource-group: another|zones: swapped",
        "error",
        "reports an error",
        "says in the plan and in the reference that only a new load balancer gets them",
        "all else that the Service says is carried out",
    ),
    Difference(
        "default-weight: pods move",
        "listener */backends",
        "leaves weights with ignore-weight-update",
        "reports ignore-weight-update as not offered, and sets them",
        "weights follow the pods, so that each pod gets the same share",
    ),
    Difference(
        "domain-extensions: one certificate changed",
        "certificate *|error",
        "sends the change without the extension's ID and with the old certificate, which is refused",
        "changes the certificate",
        "a renewed certificate must be used",
    ),
    Difference(
        "drift: listener stopped, *",
        "listener */Scheduler|listener */status",
        "does not look at listeners while the hash in the Service's label fits",
        "puts right what was changed by hand",
        "the requirements say so",
    ),
    Difference(
        "lost-in-cloud: CLB gone, *",
        "error|load balancer|load balancers|listener *|server groups",
        "reports an error for good",
        "makes it again",
        "the requirements say so",
    ),
    Difference(
        "hc-tcp: port annotation gone|name: gone",
        "listener */HealthCheckConnectPort|load balancer/name",
        "leaves what an annotation set that is gone",
        "returns to the default",
        _FOLLOWS,
    ),
    Difference(
        "http-redirect|http-redirect: *",
        "server groups|unused groups|listener http:80/backends|listener http:80/HealthCheck",
        "has a server group for the listener that redirects, and a health check once it has had one",
        "has neither",
        "a listener that redirects has no backends",
    ),
    Difference(
        "https-cert: certificate removed",
        "error",
        "sends the listener without a certificate, so it stays as it was",
        "reports an error",
        "HTTPS needs a certificate; without one, no change of the listener would be accepted",
    ),
    Difference(
        "preserve-on-delete: deletion",
        "load balancer/delete_protection|load balancer/protection|listener *|server groups",
        "keeps the load balancer, without protection, listeners and groups",
        "keeps everything but the owner's tags",
        "what is kept should go on serving",
    ),
    Difference(
        "reuse-*",
        "load balancer/tags/kubernetes.reused.by.user",
        "marks a reused load balancer",
        "asks its user to mark it (cloud-controller/shared-with), as was done here, and puts no tag on it",
        "a Service must not take any load balancer of the account whose ID it knows",
    ),
    Difference(
        "reuse-by-id-override: tags and name on the user's CLB|reuse-by-id-override: deletion",
        "load balancer/name|load balancer/tags/a",
        "changes the name and tags",
        "leaves them",
        _USERS,
    ),
    Difference(
        "reuse-by-id|reuse-by-id: node *",
        "listener tcp:80|unused groups",
        "makes a server group without a listener unless force-override-listeners is on",
        "makes the Service's listeners if their ports are free; the annotation is for ports that are not",
        "a Service of type LoadBalancer asks for them",
    ),
    Difference(
        "reuse-by-id: scheduler*|reuse-by-id: restart",
        "error|writes",
        "has no listener to change",
        "sends the scheduler wlc, which is refused for TCP, and tries again",
        "follows from the listeners that are made",
    ),
    Difference(
        "reuse-by-id-override: deletion",
        "error|listener tcp:80|server groups",
        "leaves its listener if the override was turned off meanwhile, and the group that it still uses",
        "deletes both",
        "what a Service's controller made goes with the Service",
    ),
    Difference(
        "reuse-override-kept: deletion",
        "listener tcp:80",
        "deletes the user's listener with the Service",
        "gives it back to the server group that it had",
        _USERS,
    ),
    Difference(
        "reuse-vgroup-weight|reuse-vgroup-weight: third pod *|reuse-vgroup-weight: weight",
        "listener tcp:80|server groups|unused groups",
        "puts backends into the user's server group (vgroup-port, weight)",
        "reports both as not offered; the Service has a listener and a server group of its own",
        "nobody else changes them, so their backends are the Service's",
    ),
    Difference(
        "udp: scheduler and proxy protocol",
        "error|listener udp:53/*",
        "asks to change the listener from rr to sch, which the cloud refuses",
        "deletes the listener and makes it again",
        _EFFECT,
    ),
    Difference(
        "spec-paybyspec: restart",
        "error",
        "is silent about a refused change while the hash in the Service's label fits",
        "reports it again",
        "it is still not done",
    ),
)
