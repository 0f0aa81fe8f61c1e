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
)
