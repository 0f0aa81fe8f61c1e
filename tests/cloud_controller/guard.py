"""The safeguard as tests have it that are not about it: no identity is compared, confirmations come from the Lease."""

from __future__ import annotations

import itertools
from typing import Any

from cloud_controller.binding import UNBOUND, Binding
from cloud_controller.kube import Object
from cloud_controller.safeguard import ANNOTATION, Safeguard


def guard(kube: Any = None, binding: Binding = UNBOUND) -> Safeguard:
    """One for this API server; None, where nothing is ever held. It reads the Lease anew each time."""
    clock = itertools.count(step=10.0)
    return Safeguard(kube, "kube-system", "cloud-controller-manager", binding=binding, clock=lambda: next(clock))


def lease_that_confirms(safeguard: Safeguard) -> Object:
    """The Lease after an administrator has confirmed everything that is held."""
    annotations = {f"{ANNOTATION}{action.held}": "2026-01-01T00:00:00Z" for action in safeguard.held()}
    assert annotations, "nothing is held"
    metadata = {"namespace": "kube-system", "name": "cloud-controller-manager", "annotations": annotations}
    return {"metadata": {**metadata, "resourceVersion": "1"}, "spec": {}}
