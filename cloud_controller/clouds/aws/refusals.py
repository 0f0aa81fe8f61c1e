"""What is refused about a Service on AWS although each of its annotations is valid."""

from __future__ import annotations

from cloud_controller.clouds.aws import attributes as aws
from cloud_controller.clouds.aws.annotation_entries import AWS_LBC_CLASS, CLASSES, PREFIX
from cloud_controller.clouds.aws.attribute_refusals import (
    ATTRIBUTES_SHARED,
    OF_ATTRIBUTES,
    TCP_KEY,
    TOO_MANY_ATTRIBUTES,
    not_pairs,
    values_of,
)
from cloud_controller.clouds.aws.port_terms import CERTIFICATES, SERVES_UDP_TOO, TLS, field
from cloud_controller.clouds.aws.target_refusals import OF_TARGETS
from cloud_controller.clouds.common.refusals import (
    IPV4,
    RANGES,
    SERVED,
    missing_node_port,
    only_ipv4,
    only_ipv6_ranges,
    refused_ranges,
    too_many_ranges,
    unserved_protocol,
)
from cloud_controller.clouds.common.tags import TagRules
from cloud_controller.load_balancers.nameable import Naming
from cloud_controller.load_balancers.refusals import Refusal, too_many_ports
from cloud_controller.load_balancers.terms import (
    FIRST_FAMILY,
    INDEX,
    ITEM,
    PORT,
    PORT_KEYS,
    PORTS,
    PROTOCOL,
    Term,
    choice,
    flag,
    given,
    number,
    one,
    part,
    say,
    shared,
    spec,
    text,
    words,
)

_CLASS, _TYPE = spec("loadBalancerClass"), text("type")
_OF_NETWORK, _OF_CLASSIC = (
    tuple(name for name, each in CLASSES.items() if each == kind) for kind in ("network", "classic")
)
SHARED = {
    "network": _CLASS.is_(*_OF_NETWORK, AWS_LBC_CLASS) | (~_CLASS.is_(*_OF_CLASSIC) & _TYPE.is_("nlb")),
    **ATTRIBUTES_SHARED,
}
NETWORK = shared("network", SHARED["network"])
"""Whether it is a network load balancer."""
_INTERNAL = (given("scheme") & text("scheme").is_("internal")) | (
    ~given("scheme") & ((given("internal") & flag("internal")) | (~given("internal") & _CLASS.is_(AWS_LBC_CLASS)))
)
_BY_FLAG = Term(
    "(variables.value_internal ? 'internal' : 'internet-facing')",
    lambda asked: "internal" if asked.settings.flag("internal") else "internet-facing",
)
_BY_NODE = text("nlb_target_type").is_("instance")
# ------------------------------------------------------------------------------------------------------ both kinds

_NAMED_GROUPS, _PREFIX_LISTS = words("security_groups"), words("security_group_prefix_lists")
EVERYBODY = RANGES.where(ITEM.matches(r"\s*(0\.0\.0\.0|::)/0\s*")).any
_NO_EFFECT = f"would have no effect: the security groups in {field('security_groups')} decide which clients may connect"


def _ids(argument: str, prefix: str, what: str) -> Refusal:
    why = say(f"'{{}}' is not a valid {what} ID", ITEM)
    return Refusal(argument, ~ITEM.matches(f"{prefix}-[0-9a-f]+"), why, f"{prefix}-…", each=words(argument))


def attribute(key: str) -> Term:
    """What a network load balancer's `attributes` say of this attribute; '' without."""
    values = values_of(words("attributes"), key)
    cel = f"({NETWORK.cel} ? ([''] + {values.cel})[{values.cel}.size()] : '')"
    return Term(cel, lambda asked: ["", *values.of(asked)][-1] if NETWORK.of(asked) else "")


_FLAGS = ("cross_zone_load_balancing_enabled", "access_log_enabled")


def _contradicts(argument: str, key: str) -> Refusal:
    value = text(argument)
    if argument in _FLAGS:
        value = Term(
            f"({value.cel} ? 'true' : 'false')", lambda asked: "true" if asked.settings.flag(argument) else "false"
        )
    why = say(f"{key}={{}} contradicts {field(argument)}", attribute(key))
    when = NETWORK & given(argument) & values_of(words("attributes"), key).any & ~attribute(key).same(value)
    return Refusal("attributes", when, why, "only one of the two")


LOGGED = (given("access_log_enabled") & flag("access_log_enabled")) | (
    ~given("access_log_enabled") & attribute(aws.ENABLED).is_("true")
)
"""Whether access logs are written."""


def _of_logs(argument: str, key: str) -> Term:
    """The bucket or the prefix of the logs, by either annotation."""
    named, by_key = text(argument), attribute(key)
    return Term(
        f"(variables.has_{argument} ? {named.cel} : {by_key.cel})", lambda asked: named.of(asked) or by_key.of(asked)
    )


_BUCKET = _of_logs("access_log_s3_bucket_name", aws.BUCKET)

_TAGS = TagRules(
    # Of 50: the owner's three, the cluster's, the Service's name, the one of listeners' attributes, and later the
    # cluster's UID and two of parts of a load balancer.
    room=choice(NETWORK, 41, 42),
    longest_key=128,
    longest_value=256,
    # Elastic Load Balancing's; EC2 allows more.
    valid=lambda word: word.only_of("LNZ", "_.:/=+-@"),
    characters="letters, digits, spaces and _ . : / = + - @",
    # The AWS Load Balancer Controller's, EKS's, Karpenter's, and the cluster's in clusters older than its prefix.
    reserved=(
        *("aws:", "eks:", "kubernetescluster", "karpenter.k8s.aws/"),
        *("elbv2.k8s.aws/", "service.k8s.aws/", "ingress.k8s.aws/", "gateway.k8s.aws"),
    ),
)

_OF_LOGS = (
    *(_contradicts(argument, key) for argument, key in aws.OF_ANNOTATIONS.items()),
    Refusal(
        "access_log_s3_bucket_name",
        LOGGED & _BUCKET.is_(""),
        "missing, but access logs are enabled",
        "the name of an S3 bucket",
    ),
)

_OF_BOTH = (
    Refusal(
        "type",
        given("type")
        & (
            (_CLASS.is_(*_OF_CLASSIC) & _TYPE.is_("nlb", "external", "nlb-ip"))
            | (_CLASS.is_(*_OF_NETWORK) & ~_TYPE.is_("nlb"))
            | (_CLASS.is_(AWS_LBC_CLASS) & ~_TYPE.is_("nlb", "external"))
        ),
        say("'{}' contradicts spec.loadBalancerClass '{}'", _TYPE, _CLASS),
        "no annotation: the class sets the type",
    ),
    Refusal(
        "spec.loadBalancerIP",
        ~spec("loadBalancerIP").is_(""),
        say("'{}' is not supported: on AWS, annotations set a load balancer's addresses", spec("loadBalancerIP")),
        f"none; use {field('eip_allocations')} or {field('private_ipv4_addresses')}",
    ),
    Refusal(
        "scheme",
        given("internal") & given("scheme") & ~text("scheme").same(_BY_FLAG),
        say(f"'{{}}' contradicts {field('internal')}", text("scheme")),
        say("{}, or only one of the two annotations", _BY_FLAG),
    ),
    _ids("security_groups", "sg", "security group"),
    _ids("extra_security_groups", "sg", "security group"),
    *refused_ranges(_NAMED_GROUPS.any & ~EVERYBODY, _NO_EFFECT, "none"),
    Refusal("security_group_prefix_lists", _NAMED_GROUPS.any & ~RANGES.any & _PREFIX_LISTS.any, _NO_EFFECT, "none"),
    _ids("security_group_prefix_lists", "pl", "prefix list"),
    Refusal(
        "healthcheck_port",
        text("healthcheck_port").matches("[0-9]+") & text("healthcheck_port").number.above(65_535),
        say("'{}' is not a valid port number", text("healthcheck_port")),
        "1 to 65535",
    ),
    *_OF_LOGS,
    not_pairs("target_node_labels"),
    not_pairs("additional_resource_tags"),
    *_TAGS.refusals(),
)

# --------------------------------------------------------------------------------------------------------- classic

_TYPE_NLB = f"annotation {PREFIX}type: nlb"
_LONGEST_IDLE = 4000
"""The longest idle timeout in seconds."""
LONGEST_CHECK = 60
"""The longest timeout of a health check in seconds."""
_TIMEOUT, _INTERVAL = number("healthcheck_timeout"), number("healthcheck_interval", 10)
_LONGEST_TIMEOUT = Term(
    f"[{LONGEST_CHECK}, {_INTERVAL.cel} - 1].min()", lambda asked: min(LONGEST_CHECK, _INTERVAL.of(asked) - 1)
)

_CLASSIC = (
    # With ranges that admit everybody, the cloud config's security group may decide.
    *only_ipv6_ranges(~_NAMED_GROUPS.any & ~EVERYBODY),
    unserved_protocol(
        "TCP", why="is not supported by classic load balancers", allowed=f"TCP; TCP or UDP with {_TYPE_NLB}"
    ),
    missing_node_port(),
    Refusal(
        "spec.sessionAffinity",
        ~spec("sessionAffinity").is_("", "None"),
        say("'{}' is not supported by classic load balancers", spec("sessionAffinity")),
        f"None; ClientIP with {_TYPE_NLB}",
    ),
    *only_ipv4("classic load balancers in a VPC have only IPv4 addresses", _TYPE_NLB),
    Refusal(
        "ssl_cert",
        CERTIFICATES.size.above(1),
        "listeners of classic load balancers have only one certificate",
        f"one ARN; several with {_TYPE_NLB}",
    ),
    Refusal(
        "connection_idle_timeout",
        number("connection_idle_timeout").above(_LONGEST_IDLE),
        say("{} s is too long for a classic load balancer", number("connection_idle_timeout")),
        f"1 to {_LONGEST_IDLE:,}",
    ),
    Refusal(
        "healthcheck_timeout",
        given("healthcheck_timeout") & _TIMEOUT.above(_LONGEST_TIMEOUT),
        say(
            "{} s is too long: a classic load balancer's timeout must be less than the interval ({} s)",
            _TIMEOUT,
            _INTERVAL,
        ),
        say("2 to {}", _LONGEST_TIMEOUT),
    ),
)

# --------------------------------------------------------------------------------------------------------- network

_CHECK_INTERVAL = Term(
    f"(variables.has_healthcheck_interval ? variables.value_healthcheck_interval"
    f" : {spec('externalTrafficPolicy').is_('Local').cel} && {_BY_NODE.cel} ? 10 : 30)",
    lambda asked: (
        asked.settings.number("healthcheck_interval")
        or (10 if asked.spec.get("externalTrafficPolicy") == "Local" and _BY_NODE.of(asked) else 30)
    ),
)
_TCP_OF_PORT = Term(
    "object.spec.ports.filter(p, p.port == item.port && p.protocol == 'TCP' && has(p.nodePort))",
    lambda asked: [
        port
        for port in PORTS.of(asked)
        if port["port"] == asked.item["port"] and port["protocol"] == "TCP" and port.get("nodePort")
    ],
)
_NODE_PORT = Term("item.nodePort", lambda asked: asked.item["nodePort"])
_TCP_NODE_PORT = Term(f"{_TCP_OF_PORT.cel}[0].nodePort", lambda asked: _TCP_OF_PORT.of(asked)[0]["nodePort"])


def _only_with(argument: str, scheme: str, other: str) -> Refusal:
    where = ~_INTERNAL if other == "internet-facing" else _INTERNAL
    why = f"not supported on an {other} load balancer"
    return Refusal(argument, words(argument).any & where, why, f"only on {scheme} load balancers")


_CODES = Term(
    "variables.value_healthcheck_success_codes.split(',')",
    lambda asked: (asked.settings.text("healthcheck_success_codes") or "").split(","),
)
_FIRST_CODE, _LAST_CODE = part(0, "-"), part(1, "-")


def _one_for_each_subnet(argument: str) -> Refusal:
    """Without names, and for what a name means, only the cloud knows the subnets."""
    given, subnets = words(argument), words("subnets")
    when = given.any & subnets.any & ~given.size.same(subnets.size)
    why = say("{} values for {} subnets ({})", given.size, subnets.size, subnets.joined)
    return Refusal(argument, when, why, "one for each subnet")


UDP_NEEDS_PREFIX = (
    f"UDP listeners on a network load balancer with IPv6 need {field('enable_prefix_for_ipv6_source_nat')}: on"
)
_UDP_BY_IPV6 = PORTS.where(PROTOCOL.is_("UDP")).any & ~text("enable_prefix_for_ipv6_source_nat").is_("on")

_OF_NETWORK_KIND = (
    unserved_protocol(*SERVED),
    missing_node_port(f"{field('nlb_target_type')}: ip").only(_BY_NODE),
    Refusal(
        "ssl_ports",
        TLS & SERVES_UDP_TOO,
        say("port {} serves UDP too, and AWS does not support TLS on a listener for both TCP and UDP", PORT),
        "ports that serve only TCP",
        each=PORTS,
    ),
    Refusal(
        "ip_address_type",
        text("ip_address_type").is_("ipv4") & FIRST_FAMILY.is_("IPv6"),
        "'ipv4' contradicts spec.ipFamilies, which gives targets IPv6 addresses",
        "dualstack",
    ),
    Refusal(
        "ip_address_type",
        text("ip_address_type").is_("dualstack") & _UDP_BY_IPV6,
        f"'dualstack' is not possible: {UDP_NEEDS_PREFIX}",
        "ipv4",
    ),
    Refusal(
        "spec.ipFamilies",
        ~given("ip_address_type")
        & (FIRST_FAMILY.is_("IPv6") | spec("ipFamilyPolicy").is_("RequireDualStack"))
        & _UDP_BY_IPV6,
        f"IPv6 is not possible: {UDP_NEEDS_PREFIX}",
        "IPv4",
    ),
    Refusal(
        "healthcheck_success_codes",
        ~_LAST_CODE.is_("") & _FIRST_CODE.above(_LAST_CODE),
        say("the range '{}' ends before it begins", ITEM),
        "ascending ranges, such as 200-299",
        each=_CODES,
    ),
    _one_for_each_subnet("eip_allocations"),
    _one_for_each_subnet("private_ipv4_addresses"),
    Refusal(
        "eip_allocations",
        ~ITEM.matches("eipalloc-[0-9a-f]+"),
        say("'{}' is not a valid allocation ID", ITEM),
        "eipalloc-…",
        each=words("eip_allocations"),
    ),
    _only_with("eip_allocations", "internet-facing", "internal"),
    Refusal(
        "eip_allocations",
        words("eip_allocations").repeated.any,
        "contains a duplicate allocation ID",
        "each allocation ID once",
    ),
    _only_with("private_ipv4_addresses", "internal", "internet-facing"),
    Refusal(
        "private_ipv4_addresses",
        ~ITEM.matches(IPV4),
        say("'{}' is not an IPv4 address", ITEM),
        "such as 10.0.1.100",
        each=words("private_ipv4_addresses"),
    ),
    Refusal(
        "healthcheck_protocol",
        text("healthcheck_protocol").is_("SSL"),
        "'SSL' is not supported by network load balancers",
        "HTTP, HTTPS, TCP",
    ),
    Refusal(
        "healthcheck_timeout",
        given("healthcheck_timeout") & _TIMEOUT.above(_CHECK_INTERVAL),
        say("{} s is longer than the interval ({} s)", _TIMEOUT, _CHECK_INTERVAL),
        say("2 to {}", _CHECK_INTERVAL),
    ),
    Refusal(
        say("spec.ports[{}].nodePort", INDEX),
        _BY_NODE
        & PROTOCOL.is_("UDP")
        & Term(
            f"{_TCP_OF_PORT.cel}.exists(p, p.nodePort != item.nodePort)",
            lambda asked: any(port["nodePort"] != asked.item.get("nodePort") for port in _TCP_OF_PORT.of(asked)),
        ),
        say(
            "TCP and UDP on port {} share one listener, which sends both to the same target port,"
            " but the node ports are {} and {}",
            PORT,
            _TCP_NODE_PORT,
            _NODE_PORT,
        ),
        f"the same node port for both, or {field('nlb_target_type')}: ip",
        each=PORTS,
    ),
    Refusal(
        "connection_idle_timeout",
        given("connection_idle_timeout")
        & ~number("connection_idle_timeout").above(59)
        & PORTS.where(PROTOCOL.is_("TCP") & ~TLS & ~SERVES_UDP_TOO).any,
        say(f"'{{}}' is not a valid value of {aws.TCP_IDLE_TIMEOUT}", number("connection_idle_timeout")),
        aws.LISTENER[aws.TCP_IDLE_TIMEOUT].text,
    ),
)

MOST_LISTENERS = 50
"""Of a network load balancer, which AWS does not raise; a classic one's 100 are an adjustable quota."""
_LISTENERS = PORTS.where(~(PROTOCOL.is_("UDP") & TCP_KEY.within(PORT_KEYS)))

REFUSALS = (
    too_many_ports().only(~NETWORK),
    Refusal(
        "spec.ports",
        # The listeners are counted only of so many ports as they could have.
        NETWORK & (PORTS.size.above(2 * MOST_LISTENERS) | _LISTENERS.size.above(MOST_LISTENERS)),
        say("{} ports are too many", PORTS.size),
        f"at most {MOST_LISTENERS} listeners, as AWS allows a load balancer; TCP and UDP of a port share one",
    ),
    *TOO_MANY_ATTRIBUTES,
    too_many_ranges(),
    *_OF_BOTH,
    *(each.only(~NETWORK) for each in _CLASSIC),
    *(each.only(NETWORK) for each in (*_OF_NETWORK_KIND, *OF_ATTRIBUTES, *OF_TARGETS)),
)

NAMINGS = (
    # A subnet may be named by its Name tag too, whose ID only the cloud knows.
    Naming("subnet", "subnets", words("subnets"), only_name=ITEM.matches("subnet-.*")),
    Naming("security-group", "security_groups", _NAMED_GROUPS),
    Naming("security-group", "extra_security_groups", words("extra_security_groups")),
    Naming("prefix-list", "security_group_prefix_lists", _PREFIX_LISTS),
    Naming("certificate", "ssl_cert", CERTIFICATES),
    Naming("elastic-ip", "eip_allocations", words("eip_allocations")),
    Naming("log-bucket", "access_log_s3_bucket_name", one(_BUCKET), LOGGED),
    # Without a prefix, logs go to the top of the bucket.
    Naming(
        "log-prefix", "access_log_s3_bucket_prefix", one(_of_logs("access_log_s3_bucket_prefix", aws.PREFIX)), LOGGED
    ),
)
"""The existing resources that annotations name."""
