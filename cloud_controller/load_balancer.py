"""A load balancer as a model: what should be, what is, and the actions that lead from one to the other.

(The contract.)
"""

from __future__ import annotations

from typing import Protocol


class LoadBalancers(Protocol):
    """The load balancers of a cloud."""
