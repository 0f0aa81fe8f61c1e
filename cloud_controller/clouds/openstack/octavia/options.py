"""What the cloud config says about load balancers: the defaults of every Service, and the classes that it may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Networks:
    """Where load balancers and their floating IPs are; "" where the cloud config leaves it open.

    `floating_subnet`: the name of a subnet, or a pattern such as `public-*`. `floating_subnet_tags`: words separated by
    commas, all of which a subnet must have.
    """

    floating_network_id: str = ""
    floating_subnet_id: str = ""
    floating_subnet: str = ""
    floating_subnet_tags: str = ""
    network_id: str = ""
    subnet_id: str = ""
    member_subnet_id: str = ""


@dataclass(frozen=True, slots=True)
class LoadBalancerOptions:
    """The section [LoadBalancer], and each [LoadBalancerClass "NAME"] by its name. Times in seconds."""

    networks: Networks = Networks()
    classes: Mapping[str, Networks] = field(default_factory=dict)
    method: str = "ROUND_ROBIN"
    provider: str = ""
    """Octavia's provider of new load balancers; "": its default."""
    internal: bool = False
    flavor_id: str = ""
    availability_zone: str = ""
    create_monitor: bool = False
    monitor_delay: int = 5
    monitor_timeout: int = 3
    monitor_max_retries: int = 1
    monitor_max_retries_down: int = 3
    manage_security_groups: bool = False
    node_selector: tuple[str, ...] = ()
