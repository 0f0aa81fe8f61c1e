"""The annotations by which a Service sets up its load balancer in Octavia: names and meanings are upstream's."""

from __future__ import annotations

from functools import partial

from cloud_controller import patterns
from cloud_controller.clouds.openstack.octavia.refusals import INTERNAL, NAMINGS, PREFIX, REFUSALS
from cloud_controller.load_balancers.annotation import OFFERED, OWN_NAME, SELECTS, SHARED
from cloud_controller.load_balancers.catalogue import Annotation, Catalogue, Mutability
from cloud_controller.load_balancers.restrictions import MOST_RANGES, SOURCE_RANGES

_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_EXAMPLE = "6f0a1c9e-8a52-4c7b-9e0d-1b2f3a4c5d6e"
_ID = f"an ID, such as {_EXAMPLE}"
_SOURCE = "cloud-provider-openstack, expose-applications-using-loadbalancer-type-service.md"
_CONFIG = "the cloud config's {}"

_entry = partial(Annotation, since="0.3", source=_SOURCE)
_replacing = partial(_entry, applies_to="the load balancer", mutability=Mutability.REPLACE, type=str)
_floating = partial(_entry, applies_to="the floating IP", mutability=Mutability.IN_PLACE, type=str)
_listener = partial(_entry, applies_to="every listener", mutability=Mutability.IN_PLACE, type=int)
_monitor = partial(_entry, applies_to="every pool with a health monitor", mutability=Mutability.IN_PLACE, type=int)

_NETWORKS = (
    _entry(
        name=INTERNAL,
        argument="internal",
        sets="internal",
        type=bool,
        default_note=_CONFIG.format("internal-lb, else false"),
        description="Whether the load balancer has no floating IP. A change adds or removes the floating IP; the"
        " address in the load balancer's own subnet stays. With `internal-lb = true` in the cloud config, every load"
        " balancer is internal, and `false` is ignored. With `load-balancer-id` it says what that one must be.",
        applies_to="the load balancer",
        mutability=Mutability.IN_PLACE,
        moves=("internal",),
    ),
    _entry(
        name=f"{PREFIX}class",
        argument="lb_class",
        sets="class",
        type=str,
        description='The section [LoadBalancerClass "NAME"] of the cloud config that says in which networks the load'
        " balancer and its floating IP are. A change of the subnet replaces the load balancer; one of the floating"
        " network only the floating IP.",
        applies_to="the load balancer",
        mutability=Mutability.IN_PLACE,
        form="the name of a class in the cloud config",
        example="dmz",
        names_nothing="the cloud config has the classes",
    ),
    _floating(
        name=f"{PREFIX}floating-network-id",
        argument="floating_network_id",
        sets="floating_network",
        pattern=_UUID,
        form=_ID,
        example=_EXAMPLE,
        default_note=_CONFIG.format("floating-network-id, else the only external network"),
        description="The external network of the floating IP. A change replaces the floating IP.",
        moves=("floating_network",),
    ),
    _floating(
        name=f"{PREFIX}floating-subnet-id",
        argument="floating_subnet_id",
        sets="floating_subnet",
        pattern=_UUID,
        form=_ID,
        example=_EXAMPLE,
        default_note=_CONFIG.format("floating-subnet-id, else any subnet of the network"),
        description="The subnet of the floating IP. A change replaces a floating IP that is not in it.",
        moves=("floating_subnet",),
    ),
    _floating(
        name=f"{PREFIX}floating-subnet",
        argument="floating_subnet_name",
        sets="floating_subnet",
        default_note=_CONFIG.format("floating-subnet"),
        description="The name of the floating IP's subnet. `*` stands for any text; `~` at the beginning makes it a"
        " regular expression in RE2's syntax; `!` negates either. Of several subnets, the first with a free address is"
        " used.",
        pattern=f".{{1,{patterns.LONGEST}}}",
        form=f"a name or pattern of at most {patterns.LONGEST} characters",
        example="public-*",
    ),
    _floating(
        name=f"{PREFIX}floating-subnet-tags",
        argument="floating_subnet_tags",
        sets="floating_subnet",
        default_note=_CONFIG.format("floating-subnet-tags"),
        description="The tags that the floating IP's subnet must have. Of several subnets, the first with a free"
        " address is used.",
        pattern=r"[^,\n]+(,[^,\n]*){0,99}",
        form="at most 100 tags, separated by commas",
        example="gold,ipv4",
    ),
    _floating(
        name=f"{PREFIX}keep-floatingip",
        argument="keep_floating_ip",
        sets="keep_floating_ip",
        type=bool,
        default=False,
        description="Keep the floating IP when the Service is deleted or no longer needs it.",
    ),
    _replacing(
        name=f"{PREFIX}network-id",
        argument="network_id",
        sets="vip_network",
        pattern=_UUID,
        form=_ID,
        example=_EXAMPLE,
        default_note=_CONFIG.format("network-id, else the network of the nodes"),
        description="The network of the load balancer's own address.",
    ),
    _replacing(
        name=f"{PREFIX}subnet-id",
        argument="subnet_id",
        sets="vip_subnet",
        pattern=_UUID,
        form=_ID,
        example=_EXAMPLE,
        default_note=_CONFIG.format("subnet-id, else the subnet of the nodes"),
        description="The subnet of the load balancer's own address.",
    ),
    _replacing(
        name=f"{PREFIX}port-id",
        argument="port_id",
        sets="vip_port",
        pattern=_UUID,
        form=_ID,
        example=_EXAMPLE,
        default_note="a port that Octavia creates",
        description="An existing port whose address becomes the load balancer's own. It stays when the load balancer"
        " is deleted.",
        exclusive=("vip_port",),
    ),
    _entry(
        name=f"{PREFIX}member-subnet-id",
        argument="member_subnet_id",
        sets="pool.member_subnet",
        type=str,
        pattern=_UUID,
        form=_ID,
        example=_EXAMPLE,
        default_note=_CONFIG.format("member-subnet-id, else the subnet that has the node's address"),
        description="The subnet from which the load balancer reaches the nodes. A change makes new pools, to which the"
        " listeners then forward.",
        applies_to="every pool",
        mutability=Mutability.IN_PLACE,
    ),
)

_LOAD_BALANCERS = (
    _replacing(
        name=f"{PREFIX}flavor-id",
        argument="flavor_id",
        sets="flavor",
        pattern=_UUID,
        form=_ID,
        example=_EXAMPLE,
        default_note=_CONFIG.format("flavor-id, else Octavia's default"),
        description="The flavor of the load balancer, which its administrator defines in Octavia.",
        names_nothing=OFFERED,
    ),
    _replacing(
        name=f"{PREFIX}availability-zone",
        argument="availability_zone",
        sets="availability_zone",
        default_note=_CONFIG.format("availability-zone, else Octavia's default"),
        form="the name of a zone in Octavia",
        example="az-1",
        description="The availability zone of the load balancer.",
        names_nothing=OFFERED,
    ),
    _replacing(
        name=f"{PREFIX}load-balancer-id",
        argument="id",
        sets="id",
        pattern=_UUID,
        form=_ID,
        example=_EXAMPLE,
        default_note="a load balancer of its own",
        description="The ID of an existing load balancer to use: one of a Service in the same namespace, or one with"
        " the tag `cloud-controller/shared-with=CLUSTER/NAMESPACE`. The Service has its own listeners and pools there,"
        " marked by tags; everything else stays as it is. A port that somebody else uses is an error. Unlike upstream,"
        " the controller never writes this annotation.",
        names_nothing=SHARED,
    ),
    _entry(
        name=f"{PREFIX}load-balancer-address",
        argument="load_balancer_address",
        sets="load_balancer_address",
        type=str,
        description="Upstream writes the address here.",
        applies_to="nothing",
        mutability=Mutability.IN_PLACE,
        ignored="it is an output of cloud-provider-openstack; the address is in status.loadBalancer.ingress",
    ),
    _entry(
        name=f"{PREFIX}hostname",
        argument="hostname",
        sets="hostname",
        type=str,
        pattern=r"[0-9a-z]([0-9a-z-]*[0-9a-z])?(\.[0-9a-z]([0-9a-z-]*[0-9a-z])?)*",
        form="a DNS name",
        example="web.example.com",
        description="What the Service's status shows instead of the address. The name must resolve to the address.",
        applies_to="the Service's status",
        mutability=Mutability.IN_PLACE,
        names_nothing=OWN_NAME,
    ),
    _entry(
        name=f"{PREFIX}node-selector",
        argument="node_selector",
        sets="pool.members",
        type=tuple,
        default_note=_CONFIG.format("node-selector, else all nodes"),
        example="env=prod,region",
        description="The labels of nodes that become members: `key=value`, or `key` for any value.",
        applies_to="every pool",
        mutability=Mutability.IN_PLACE,
        names_nothing=SELECTS,
    ),
    _entry(
        name=SOURCE_RANGES,
        argument="load_balancer_source_ranges",
        sets="listener.allowed_cidrs",
        type=tuple,
        most=MOST_RANGES,
        default_note="all clients",
        example="10.0.0.0/8,192.0.2.0/24",
        description="The CIDRs of the clients that may connect. `spec.loadBalancerSourceRanges` takes precedence.",
        applies_to="every listener",
        mutability=Mutability.IN_PLACE,
        source="Kubernetes, cloud-provider",
        names_nothing=SELECTS,
    ),
)

_LISTENERS = (
    _listener(
        name=f"{PREFIX}connection-limit",
        argument="connection_limit",
        sets="listener.connection_limit",
        minimum=-1,
        maximum=2_147_483_647,
        default=-1,
        unit="connections",
        description="The number of connections that a listener serves at once; -1: no limit.",
    ),
    *(
        _listener(
            name=f"{PREFIX}timeout-{name}",
            argument=f"timeout_{name.replace('-', '_')}",
            sets=f"listener.timeout_{name.replace('-', '_')}",
            minimum=0,
            maximum=31_536_000_000,
            default=default,
            unit="milliseconds",
            description=text,
        )
        for name, default, text in (
            ("client-data", 50_000, "How long a client may be silent."),
            ("member-connect", 5_000, "How long a connection to a member may take to open."),
            ("member-data", 50_000, "How long a member may be silent."),
            ("tcp-inspect", 0, "How long to wait for further packets to inspect."),
        )
    ),
    _entry(
        name=f"{PREFIX}x-forwarded-for",
        argument="x_forwarded_for",
        sets="listener.protocol",
        type=bool,
        default=False,
        description="Serve TCP ports as HTTP, and tell members the client's address in the header X-Forwarded-For."
        " A change makes each listener anew: the port is closed for a moment.",
        applies_to="every listener of a TCP port",
        mutability=Mutability.IN_PLACE,
    ),
    _entry(
        name=f"{PREFIX}default-tls-container-ref",
        argument="default_tls_container_ref",
        sets="listener.default_tls_container_ref",
        type=str,
        example="https://barbican.example.com/v1/containers/6f0a1c9e-8a52-4c7b-9e0d-1b2f3a4c5d6e",
        description="The certificate with which listeners end TLS.",
        applies_to="every listener",
        mutability=Mutability.IN_PLACE,
        names_nothing="it is refused",
    ),
)

_POOLS = (
    _entry(
        name=f"{PREFIX}lb-method",
        argument="lb_method",
        sets="pool.lb_algorithm",
        type=str,
        allowed=("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP"),
        default_note=_CONFIG.format("lb-method, else ROUND_ROBIN"),
        refused={"SOURCE_IP_PORT": "only Octavia's provider OVN has it, and this controller does not support that"},
        description="How the load balancer chooses a member for a connection.",
        applies_to="every pool",
        mutability=Mutability.IN_PLACE,
    ),
    _entry(
        name=f"{PREFIX}proxy-protocol",
        argument="proxy_protocol",
        sets="pool.protocol",
        type=str,
        allowed=("true", "false", "v1", "v2"),
        default="false",
        description="Tell members the client's address by the PROXY protocol: `true` or `v1` for version 1, `v2` for"
        " version 2. A change makes new pools, to which the listeners then forward.",
        applies_to="every pool",
        mutability=Mutability.IN_PLACE,
    ),
    _entry(
        name=f"{PREFIX}enable-health-monitor",
        argument="enable_health_monitor",
        sets="health_check.protocol",
        type=bool,
        default_note=_CONFIG.format("create-monitor, else false"),
        description="Whether the load balancer checks its members: TCP ports by connecting, UDP ports by `UDP-CONNECT`,"
        " and with `externalTrafficPolicy: Local` by asking kube-proxy.",
        applies_to="every pool",
        mutability=Mutability.IN_PLACE,
    ),
    *(
        _monitor(
            name=f"{PREFIX}health-monitor-{name}",
            argument=f"health_monitor_{name.replace('-', '_')}",
            sets=f"health_check.{field}",
            minimum=1,
            maximum=maximum,
            unit=unit,
            default_note=_CONFIG.format(f"monitor-{name}, else {default}"),
            description=text,
        )
        for name, field, default, maximum, unit, text in (
            ("delay", "interval_seconds", 5, 3600, "seconds", "The time between two checks of a member."),
            (
                "timeout",
                "timeout_seconds",
                3,
                3600,
                "seconds",
                "The time after which a check fails; at most the delay.",
            ),
            ("max-retries", "healthy_threshold", 1, 10, "checks", "The successes after which a member gets traffic."),
            ("max-retries-down", "unhealthy_threshold", 3, 10, "checks", "The failures after which it gets none."),
        )
    ),
)

CATALOGUE = Catalogue(
    cloud="openstack",
    prefixes=(PREFIX, INTERNAL),
    entries=(*_NETWORKS, *_LOAD_BALANCERS, *_LISTENERS, *_POOLS),
    refusals=REFUSALS,
    namings=NAMINGS,
    exclusive_by_spec={"vip_address": "spec.loadBalancerIP"},
)
