"""What is refused about the Service of an NLB although each of its annotations is valid."""

from __future__ import annotations

import re

from cloud_controller.clouds.alicloud.annotation_entries import BACKEND_TYPE, PREFIX, RESERVED_TAGS
from cloud_controller.clouds.common.refusals import (
    IPV4,
    RANGES,
    SERVED,
    missing_node_port,
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
    ITEM,
    PORT_KEYS,
    PORTS,
    PROTOCOL,
    Asked,
    Term,
    choice,
    given,
    one,
    part,
    say,
    spec,
    text,
    words,
)
from cloud_controller.patterns import any_case


def _field(argument: str) -> str:
    return f"annotation {PREFIX}{argument.replace('_', '-')}"


_BY_POD = text("backend_type").is_("eni")
_OWN = ~given("id")
_PROTOCOLS, _RANGES, _ZONES = words("protocol_port"), words("listener_port_range"), words("zone_maps")
_BY_ADDRESS = text("server_group_type").is_("Ip")
_DUAL_STACK = text("ip_version").is_("DualStack") | (
    ~given("ip_version") & spec("ipFamilyPolicy").is_("RequireDualStack")
)
_PUBLIC = text("address_type").is_("internet") | (_DUAL_STACK & text("ipv6_address_type").is_("internet"))
_PORT = "0{0,9}(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"

# Of a word of protocol-port:
_NAMES = "|".join(map(any_case, ("tcp", "udp", "tcpssl")))
_NAME = part(0).lower


def _by_name(of_udp: str, of_others: str) -> Term:
    cel = f"({_NAME.cel} == 'udp' ? '{of_udp}' : '{of_others}')"
    return Term(cel, lambda asked: of_udp if _NAME.of(asked) == "udp" else of_others)


_TRANSPORT, _OTHER = _by_name("UDP", "TCP"), _by_name("TCP", "UDP")


def _key(transport: Term) -> Term:
    return Term(f"{transport.cel} + ':' + {part(1).cel}", lambda asked: f"{transport.of(asked)}:{part(1).of(asked)}")


_SERVES_TLS = _PROTOCOLS.where(_NAME.is_("tcpssl") & _key(_TRANSPORT).within(PORT_KEYS)).any
_FORM = "tcp:PORT, udp:PORT or tcpssl:PORT"

# Of a word of listener-port-range:
_FIRST, _LAST = (part(0).split("-", at).number for at in (0, 1))
RANGE = rf"{_PORT}-{_PORT}\s*:\s*{_PORT}"
_RANGE_FORM = "FIRST-LAST:PORT, such as 1000-2000:80"


def numbers_of(word: str) -> list[int]:
    """The first and the last port of a range, and the port of the Service."""
    return [int(number) for number in re.split("[:-]", word)]


def _taken(asked: Asked) -> list[str]:
    first, last, number = numbers_of(asked.item)
    ranged, keys = asked.once(_BY_PORT), asked.once(PORT_KEYS)
    transports = {each for each in ("TCP", "UDP") if f"{each}:{number}" in keys}
    found = []
    for port in PORTS.of(asked):
        low, high = ranged.get(port["port"], (port["port"], port["port"]))
        if port["protocol"] in transports and port["port"] != number and low <= last and first <= high:
            found.append(str(port["port"]))
    return found


_WELL_FORMED = _RANGES.where(ITEM.matches(RANGE)).once
_BY_PORT = Term("", lambda asked: {port: (low, high) for low, high, port in map(numbers_of, _WELL_FORMED.of(asked))})
"""The bounds of the ranges, by the Service's port; in CEL, `_BOUNDS` finds those of one."""
_OTHERS = "object.spec.ports.filter(p, p.port != r[2] && (p.protocol + ':' + string(r[2])) in variables.port_keys)"
_BOUNDS = (
    f"{_WELL_FORMED.cel}.filter(w, int(w.split(':')[1].trim()) == p.port)"
    ".map(w, w.split(':')[0].split('-').map(n, int(n.trim()))) + [[p.port, p.port]]"
)
_TAKEN = Term(
    f"[[{_FIRST.cel}, {_LAST.cel}, {part(1).number.cel}]]"
    f".map(r, {_OTHERS}.filter(p, [({_BOUNDS})[0]].exists(b, b[0] <= r[1] && r[0] <= b[1])).map(p, string(p.port)))[0]",
    _taken,
)
"""The Service's ports whose listeners would share a port with the range."""

_OF_PORTS = (
    unserved_protocol(*SERVED),
    Refusal(
        "protocol_port",
        _NAME.is_("http", "https"),
        say("'{}': an NLB does not speak HTTP", ITEM),
        f"{_FORM}; for HTTP a CLB, or an ALB by an Ingress",
        each=_PROTOCOLS,
    ),
    Refusal(
        "protocol_port",
        ~ITEM.matches(rf"(?:{_NAMES})\s*:\s*{_PORT}"),
        say("'{}' is not a protocol and a port", ITEM),
        _FORM,
        each=_PROTOCOLS,
    ),
    Refusal(
        "protocol_port",
        ~_key(_TRANSPORT).within(PORT_KEYS) & _key(_OTHER).within(PORT_KEYS),
        say("'{}' needs a {} port, but port {} of the Service is {}", ITEM, _TRANSPORT, part(1), _OTHER),
        say("{}:{}", _OTHER.lower, part(1)),
        each=_PROTOCOLS,
    ),
    Refusal(
        "protocol_port",
        _NAME.is_("tcpssl") & _key(_TRANSPORT).within(_PROTOCOLS.where(_NAME.is_("tcp")).map(_key(_TRANSPORT))),
        say("two protocols for port {}", part(1)),
        "one protocol for each port",
        each=_PROTOCOLS,
    ),
    Refusal(
        "listener_port_range",
        ~(ITEM.matches(RANGE) & _LAST.above(_FIRST) & ~part(1).within(_RANGES.map(part(1)).repeated)),
        say("'{}' is not a range of ports for one port of the Service", ITEM),
        _RANGE_FORM,
        each=_RANGES,
    ),
    Refusal(
        "listener_port_range",
        _TAKEN.any,
        say("'{}' overlaps the listeners of other ports: {}", ITEM, _TAKEN.joined),
        "ranges that do not overlap",
        each=_WELL_FORMED,
    ),
    Refusal(
        "listener_port_range",
        _RANGES.any & ~_BY_POD,
        "a range of ports needs pods as backends: each port of the range goes to the same port of the pods",
        f"none; or annotation {BACKEND_TYPE}: eni",
    ),
    Refusal(
        "cert_id",
        _SERVES_TLS & ~given("cert_id"),
        f"missing, but {_field('protocol_port')} asks for TLS",
        "the ID of a server certificate",
    ),
    Refusal(
        "cacert_id",
        text("cacert").is_("on") & ~given("cacert_id"),
        f"missing, but {_field('cacert')} is on",
        "the ID of a CA certificate",
    ),
)

_TAGS = TagRules(
    # Of 20: the owner's three, that of its own security group, the cluster's UID, and a part's load balancer and pool.
    room=choice(RANGES.any, 13, 14),
    longest_key=64,
    longest_value=128,
    valid=lambda word: word.only_of("LN", "_.:/=+-@"),
    characters="letters, digits and _ . : / = + - @",
    reserved=RESERVED_TAGS,
)
_ZONE_FORM = "ZONE:VSWITCH[:ADDRESS[:EIP]] for each zone, such as cn-hangzhou-k:vsw-0a1"
MOST_RANGES = 190
"""Rules that a security group has room for, besides the two that refuse everybody else."""
_IPV4_RANGES = RANGES.where(~ITEM.matches(".*:.*"))
_USABLE = Term(
    f"({_DUAL_STACK.cel} ? {RANGES.cel} : {_IPV4_RANGES.cel})",
    lambda asked: (RANGES if _DUAL_STACK.of(asked) else _IPV4_RANGES).of(asked),
)
_KEEPS_GROUPS = f"not supported with {_field('id')}: the reused load balancer keeps its own security groups"
_ITS_GROUPS = "none; set the security groups on that load balancer"

_OF_INSTANCE = (
    Refusal(
        "additional_resource_tags",
        ~ITEM.matches("[^=]+=.*"),
        say("'{}' is not key=value", ITEM),
        "such as team=web",
        each=words("additional_resource_tags"),
    ),
    *_TAGS.refusals(),
    *refused_ranges(~_OWN, _KEEPS_GROUPS, _ITS_GROUPS),
    Refusal("security_group_ids", ~_OWN & given("security_group_ids"), _KEEPS_GROUPS, _ITS_GROUPS),
    Refusal(
        "zone_maps",
        _OWN & ~_ZONES.any,
        "missing: an NLB needs zones, each with a vSwitch of the cluster's VPC",
        _ZONE_FORM,
    ),
    Refusal(
        "zone_maps",
        _OWN & ~ITEM.matches(r"[^:]*[^:\s][^:]*:\s*vsw-[^:]*(:[^:]*(:\s*|:\s*eip-[^:]*)?)?"),
        say("'{}' is not a zone with its vSwitch", ITEM),
        _ZONE_FORM,
        each=_ZONES,
    ),
    Refusal(
        "zone_maps",
        _OWN & ~part(3).is_("") & text("address_type").is_("intranet"),
        say(f"{{}} cannot be used: {_field('address_type')} is intranet", part(3)),
        "no elastic IP, or address-type: internet",
        each=_ZONES,
    ),
    Refusal(
        "zone_maps",
        _OWN & ~part(2).is_("") & ~part(2).matches(IPV4),
        say("'{}' in '{}' is not an IPv4 address", part(2), ITEM),
        _ZONE_FORM,
        each=_ZONES,
    ),
    Refusal(
        "zone_maps",
        _OWN,
        say("two vSwitches are in zone {}", ITEM),
        "one vSwitch for each zone",
        each=_ZONES.map(part(0)).repeated,
    ),
    Refusal(
        "spec.ipFamilies",
        _OWN & ~FIRST_FAMILY.is_("IPv4"),
        say("{} cannot be the first family: load balancers reach backends by IPv4", FIRST_FAMILY),
        "IPv4 as the first family",
    ),
    Refusal(
        "bandwidth_package_id",
        _OWN & given("bandwidth_package_id") & ~_PUBLIC,
        "the load balancer has no public addresses that could use the bandwidth",
        "none; or address-type: internet",
    ),
    *refused_ranges(
        given("security_group_ids"),
        f"the security groups in {_field('security_group_ids')} decide which clients may connect",
        "only one of the two",
    ),
    *only_ipv6_ranges(_OWN & ~_DUAL_STACK),
    *refused_ranges(
        _OWN & _USABLE.size.above(MOST_RANGES),
        say("{} ranges are too many", _USABLE.size),
        f"at most {MOST_RANGES}",
    ),
    Refusal(
        "security_group_ids",
        ~ITEM.matches("sg-[0-9a-z-]+"),
        say("'{}' is not an ID", ITEM),
        "sg-…",
        each=words("security_group_ids"),
    ),
)

_OF_SERVER_GROUPS = (
    missing_node_port(f"annotation {BACKEND_TYPE}: eni").only(~_BY_POD),
    Refusal(
        "server_group_type",
        _BY_ADDRESS & ~_BY_POD,
        "Ip holds pods, but the backends are nodes",
        f"Instance; or annotation {BACKEND_TYPE}: eni",
    ),
    Refusal(
        "preserve_client_ip",
        _BY_ADDRESS & text("preserve_client_ip").is_("on"),
        "server groups of type Ip cannot preserve client addresses",
        f"off; or {_field('proxy_protocol')}: on",
    ),
    Refusal(
        "health_check_type",
        text("health_check_flag").is_("on")
        & text("health_check_type").is_("udp")
        & ~PORTS.where(~PROTOCOL.is_("TCP")).any,
        "'udp' cannot check TCP backends",
        "tcp, http",
    ),
)

REFUSALS = (too_many_ports(), too_many_ranges(), *_OF_PORTS, *_OF_INSTANCE, *_OF_SERVER_GROUPS)

_PACKAGE, _POLICY = text("bandwidth_package_id"), text("tls_cipher_policy")
NAMINGS = (
    Naming("subnet", "zone_maps", _ZONES.map(part(1)), _OWN),
    Naming("elastic-ip", "zone_maps", _ZONES.where(~part(3).is_("")).map(part(3)), _OWN),
    Naming("security-group", "security_group_ids", words("security_group_ids"), _OWN),
    # Server groups on a reused load balancer are made in it too.
    Naming("resource-group", "resource_group_id", one(text("resource_group_id")), given("resource_group_id")),
    Naming("bandwidth-package", "bandwidth_package_id", one(_PACKAGE), _OWN & given("bandwidth_package_id")),
    Naming("tls-policy", "tls_cipher_policy", one(_POLICY), _POLICY.matches("tls-.*")),
    Naming("certificate", "cert_id", one(text("cert_id")), given("cert_id")),
    Naming("certificate", "cacert_id", one(text("cacert_id")), given("cacert_id")),
    Naming("certificate", "additional_cert_ids", words("additional_cert_ids")),
)
"""The existing resources that annotations name."""
