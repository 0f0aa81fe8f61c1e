"""In what this controller leaves NLBs otherwise than the Go controller on purpose: the NLB table of the page."""

from __future__ import annotations

from tests.compatibility.differences import Difference

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "*",
        "server group */HealthCheck/HealthCheckInterval",
        "sends no interval, so the API's default counts",
        "sends 10 s",
        "the requirements say 10 s, and the API's default has changed",
        values=(5, 10),
    ),
    Difference(
        "protection",
        "load balancer/deletion/Enabled|load balancer/protection",
        "leaves both protections on",
        "takes off what the annotations say",
        "an annotation that is accepted must have its effect",
    ),
    Difference(
        "server-group-ip",
        "server group */PreserveClientIpEnabled",
        "leaves client addresses preserved, the API's default",
        "sends that they are not",
        "groups of type Ip cannot",
    ),
    Difference(
        "server-group-ip: to Instance|server-group-ip: restart",
        "error|writes|server groups|unused groups|server group */ServerGroupType|server group */servers",
        "makes a new group and deletes another at every reconcile; the listener keeps the old one",
        "makes a new group once, and the listener moves to it",
        "an annotation that is accepted must have its effect",
    ),
    Difference(
        "*: gone|tcpssl-additional-certs: none",
        "listener */Cps|listener */IdleTimeout|listener */more_certificates|server group */PreserveClientIpEnabled"
        "|server group */Scheduler",
        "leaves what an annotation set that is gone",
        "returns to the default",
        "a load balancer follows what its Service says now, whatever it said before",
    ),
    Difference(
        "drift: listener stopped, *",
        "listener */status",
        "does not look at listeners while the hash in the Service's label fits",
        "starts the listener again",
        "the requirements say so",
    ),
    Difference(
        "failed-job",
        "server group */servers",
        "takes a failed job for done, so there are no servers until some later event",
        "reports an error and adds them again",
        "a failed change is not done",
    ),
    Difference(
        "ipv6: to ipv4",
        "error|load balancer/ip_version",
        "refuses the change in an event",
        "makes a new load balancer, which the plan shows before, and deletes the old one",
        "an annotation that is accepted must have its effect",
    ),
    Difference(
        "name-tags-group: name and tags",
        "load balancer/tags/stage",
        "removes tags that the annotation no longer has, unless all are gone",
        "leaves them",
        "others may have set a tag of that name since, which nobody can see",
    ),
    Difference(
        "zone-maps: a zone removed",
        "error",
        "keeps the zone that the annotation no longer names",
        "asks the cloud to leave it, which refuses because one zone would remain, and reports that",
        "an annotation that cannot be followed is an error",
    ),
    Difference(
        "preserve-on-delete: deletion",
        "load balancer/deletion/Enabled|load balancer/protection|listener *|server group *|unused groups",
        "keeps the load balancer, without protection and listeners, and its server group, unused",
        "keeps everything but the owner's tags",
        "what is kept should go on serving",
    ),
    Difference(
        "reuse-by-id-override: tags and name on the user's NLB|reuse-by-id-override: deletion",
        "load balancer/name|load balancer/tags/a",
        "changes the name and tags",
        "leaves them",
        "a reused load balancer is its user's, but for the Service's own listeners",
    ),
    Difference(
        "reuse-by-id|reuse-by-id: node *",
        "listener TCP:80|server group TCP:80|unused groups",
        "makes a server group without a listener unless force-override-listeners is on",
        "makes the Service's listeners if their ports are free; the annotation is for ports that are not",
        "a Service of type LoadBalancer asks for them",
    ),
    Difference(
        "reuse-server-group|reuse-server-group: node *",
        "listener TCP:80|server group TCP:80|server groups|unused groups",
        "puts backends into the user's server group (vgroup-port, weight)",
        "reports both as not offered; the Service has a listener and a server group of its own",
        "nobody else changes them, so their backends are the Service's",
    ),
)
