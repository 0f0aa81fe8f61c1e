"""The bodies of the requests that make and change load balancers and their parts. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from cloud_controller.clouds.openstack.octavia.wire import (
    MEMBERS_IN,
    TIMEOUTS,
    X_FORWARDED_FOR,
    View,
    describe,
    internal_tags,
    tag_list,
)
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import Listener, LoadBalancerModel, Pool


def load_balancer_body(
    model: LoadBalancerModel, token: str, subnets: Mapping[str, str], vip: View, provider: str
) -> View:
    """The body that creates it with all its parts; `subnets`: of members, by address."""
    pools = {pool.name: pool for pool in model.pools}
    optional = {
        "provider": provider,
        "flavor_id": model.attributes.get("flavor"),
        "availability_zone": model.attributes.get("availability_zone"),
    }
    return {
        "name": model.name,
        "description": f"Kubernetes {describe(model.tags)}"[:255],
        "admin_state_up": True,
        "tags": tag_list({**model.tags, **internal_tags(model, token)}),
        **vip,
        **{key: value for key, value in optional.items() if value},
        "listeners": [
            {
                **new_listener_body(listener),
                "default_pool": {
                    **new_pool_body(pools[listener.pool]),
                    **(
                        {"healthmonitor": new_monitor_body(pools[listener.pool])}
                        if has_monitor(pools[listener.pool])
                        else {}
                    ),
                    "members": [
                        member_body(each, pools[listener.pool], subnets) for each in pools[listener.pool].members
                    ],
                },
            }
            for listener in model.listeners
        ],
    }


def new_listener_body(listener: Listener) -> View:
    """The body of a new listener, without its load balancer and pool."""
    return {
        "protocol": listener.attributes["protocol"],
        "protocol_port": listener.port,
        **listener_body(listener),
    }


def listener_body(listener: Listener) -> View:
    """What can be changed of a listener."""
    attributes = listener.attributes
    found: View = {
        "name": f"{listener.protocol.lower()}-{listener.port}",
        "admin_state_up": attributes.get("enabled", True),
        "connection_limit": attributes["connection_limit"],
        "tags": tag_list(listener.tags),
        "allowed_cidrs": list(_words(attributes["allowed_cidrs"])) or ["0.0.0.0/0"],
        **{name: attributes[name] for name in TIMEOUTS},
    }
    if attributes["protocol"] == "HTTP":
        found["insert_headers"] = {X_FORWARDED_FOR: "true"}
    return found


def new_pool_body(pool: Pool) -> View:
    """The body of a new pool, without its members and monitor."""
    return {"protocol": pool.attributes["protocol"], **pool_body(pool)}


def pool_body(pool: Pool) -> View:
    """What can be changed of a pool."""
    kind = pool.attributes["session_persistence"]
    return {
        "name": pool.name,
        "description": f"{MEMBERS_IN}{subnet}" if (subnet := pool.attributes.get("member_subnet")) else "",
        "admin_state_up": pool.attributes.get("enabled", True),
        "lb_algorithm": pool.attributes["lb_algorithm"],
        "session_persistence": {"type": kind} if kind else None,
        "tags": tag_list(pool.tags),
    }


def has_monitor(pool: Pool) -> bool:
    """Whether the pool's members are checked."""
    return pool.health_check.protocol != "NONE"


def new_monitor_body(pool: Pool) -> View:
    """The body of a new health monitor, without its pool."""
    return {"type": pool.health_check.protocol, **monitor_body(pool)}


def monitor_body(pool: Pool) -> View:
    """What can be changed of a health monitor. Its name holds the port, which in Octavia is each member's."""
    check = pool.health_check
    found: View = {
        "name": f"{pool.name}:{check.port or ''}",
        "admin_state_up": True,
        "delay": check.interval_seconds,
        "timeout": check.timeout_seconds,
        "max_retries": check.healthy_threshold,
        "max_retries_down": check.unhealthy_threshold,
    }
    return found | ({"url_path": check.path, "http_method": "GET", "expected_codes": "200"} if check.path else {})


def member_body(member: Member, pool: Pool, subnets: Mapping[str, str]) -> View:
    """A member; `subnets` by address, unless the pool says which."""
    found: View = {
        "address": member.address,
        "protocol_port": member.port,
        "name": member.instance_id,
        "weight": member.weight,
        # Otherwise one that somebody has switched off would stay so.
        "admin_state_up": True,
        "subnet_id": pool.attributes.get("member_subnet") or subnets[member.address],
    }
    return found | ({"monitor_port": pool.health_check.port} if pool.health_check.port else {})


def _words(value: object) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
