"""In what this controller leaves CLBs otherwise than the Go controller on purpose: the CLB table of the page."""

from __future__ import annotations

from tests.compatibility.differences import Difference

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "*",
        "listener */Scheduler",
        "round robin (rr) by default",
        "weighted round robin (wrr) by default",
        "the requirements say so, and rr ignores the weights that externalTrafficPolicy Local needs; with equal weights"
        " both are the same",
    ),
    Difference(
        "spec-only",
        "refused",
        "sends the specification with PayByCLCU, where it has no effect",
        "refuses it and names the annotation that gives it an effect",
        "a setting that is accepted must have its effect",
    ),
    Difference(
        "udp",
        "refused",
        "sends ConnectionDrain for UDP, which the SDK does not know there",
        "sends it for TCP alone, and reports the annotation as having no effect",
        "UDP has no connections to drain",
    ),
)
