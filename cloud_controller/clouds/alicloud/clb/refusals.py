"""What is refused about the Service of a CLB although each of its annotations is valid."""

from __future__ import annotations

from cloud_controller.clouds.alicloud.annotation_entries import BACKEND_TYPE, RESERVED_TAGS
from cloud_controller.clouds.common.refusals import (
    RANGES,
    SERVED,
    missing_node_port,
    refused_ranges,
    too_many_ranges,
    unserved_protocol,
)
from cloud_controller.clouds.common.tags import TagRules
from cloud_controller.load_balancers.nameable import Naming
from cloud_controller.load_balancers.refusals import Refusal, too_many_ports
from cloud_controller.load_balancers.terms import (
    ALWAYS,
    ITEM,
    PORT_KEYS,
    PORT_NUMBER,
    PROTOCOL,
    Term,
    choice,
    given,
    one,
    part,
    say,
    text,
    words,
)
from cloud_controller.patterns import any_case

_BY_POD = text("backend_type").is_("eni")
_OWN = ~given("id")
_BY_SPEC = text("instance_charge_type").is_("PayBySpec")
_PROTOCOLS, _FORWARDS = words("protocol_port"), words("forward_port")

# Of a word of protocol-port:
_NAME = part(0).lower
_KEY = Term(
    f"({_NAME.cel} == 'udp' ? 'UDP:' : 'TCP:') + {part(1).cel}",
    lambda asked: f"{'UDP' if _NAME.of(asked) == 'udp' else 'TCP'}:{part(1).of(asked)}",
)
_NAMES = "|".join(map(any_case, ("tcp", "udp", "http", "https")))
_PROTOCOL_AND_PORT = ITEM.matches(rf"(?:{_NAMES})\s*:\s*[0-9]{{1,9}}")
_SERVED = Term(
    "object.spec.ports.map(item, string(item.port) + '/' + item.protocol)",
    lambda asked: [f"{port['port']}/{port['protocol']}" for port in asked.spec.get("ports") or []],
)
# The ports of listeners, as texts:
_HTTP, _HTTPS = (_PROTOCOLS.where(_NAME.is_(name)).map(part(1)).once for name in ("http", "https"))
_BY_COOKIES = _HTTP.where(~ITEM.within(_FORWARDS.map(part(0)))).any | _HTTPS.any
"""Whether a listener of HTTP or HTTPS sends to backends: one that redirects does not."""

_FURTHER = Term("(item.split(':', 2) + [''])[1].trim()", lambda asked: asked.item.partition(":")[2].strip())
"""The certificate of a word of domain-extensions."""

_TAGS = TagRules(
    # Of 20: the owner's three, the kind of external address, the cluster's UID, and preserved, shared and left.
    room=choice(text("address_type").is_("intranet"), 12, 13),
    longest_key=64,
    longest_value=128,
    valid=lambda word: ~word.matches("(?s:.*https?://.*)"),
    characters="everything but http:// and https://",
    reserved=RESERVED_TAGS,
)

WITHOUT_VSWITCH = Refusal(
    "vswitch_id",
    _OWN & text("address_type").is_("intranet") & ~given("vswitch_id"),
    "an internal load balancer needs a vSwitch, and the cloud config has no vswitchid",
    "the ID of a vSwitch of the cluster's VPC",
)
"""If the cloud config has none."""

OF_BACKENDS = (
    Refusal(
        "backend_ip_version",
        text("backend_ip_version").is_("ipv6") & ~_BY_POD,
        "nodes are reached by their instance, which has an IPv4 address",
        f"ipv4; or annotation {BACKEND_TYPE}: eni",
    ),
    Refusal(
        "backend_ip_version",
        text("backend_ip_version").is_("ipv6") & ~text("ip_version").is_("ipv6"),
        "ipv6 needs a load balancer with an IPv6 address",
        "ipv4; or annotation ip-version: ipv6",
    ),
)
"""Those that concern the members too."""

_OF_PORTS = (
    unserved_protocol(*SERVED),
    missing_node_port(f"annotation {BACKEND_TYPE}: eni").only(
        ~_BY_POD & ~(PROTOCOL.is_("TCP") & PORT_NUMBER.within(_FORWARDS.map(part(0))))
    ),
    Refusal(
        "protocol_port",
        ~_PROTOCOL_AND_PORT,
        say("'{}' is not a protocol and a port", ITEM),
        "such as https:443,http:80",
        each=_PROTOCOLS,
    ),
    Refusal(
        "protocol_port",
        _PROTOCOL_AND_PORT & ~_KEY.within(PORT_KEYS),
        say("'{}' is not a port of the Service", ITEM),
        say("one of {}", _SERVED.joined),
        each=_PROTOCOLS,
    ),
    Refusal(
        "protocol_port",
        ALWAYS,
        say("port {} appears twice", part(1)),
        "one protocol for each port",
        each=_PROTOCOLS.map(_KEY).repeated,
    ),
    Refusal(
        "forward_port",
        ~ITEM.matches(r"[0-9]{1,9}\s*:\s*[0-9]{1,9}"),
        say("'{}' is not two ports", ITEM),
        "HTTP-PORT:HTTPS-PORT, such as 80:443",
        each=_FORWARDS,
    ),
    Refusal(
        "forward_port",
        ~part(0).within(_HTTP),
        say("port {} is not an HTTP port of the Service", part(0)),
        say("an HTTP port; annotation protocol-port makes it one (http:{})", part(0)),
        each=_FORWARDS,
    ),
    # On a reused load balancer, another Service may serve it.
    Refusal(
        "forward_port",
        _OWN & ~part(1).within(_HTTPS),
        say("port {} is not an HTTPS port of the Service", part(1)),
        say("an HTTPS port; annotation protocol-port makes it one (https:{})", part(1)),
        each=_FORWARDS,
    ),
    Refusal(
        "forward_port",
        ALWAYS,
        say("port {} appears twice", ITEM),
        "one target for each port",
        each=_FORWARDS.map(part(0)).repeated,
    ),
)

_OF_LISTENERS = (
    Refusal(
        "acl_id",
        words("acl_id").any & ~given("acl_status"),
        say(
            "it has no effect without annotation acl-status: every client could connect past {}", words("acl_id").joined
        ),
        "acl-status: on beside it; or off to admit every client",
    ),
    Refusal(
        "acl_status",
        text("acl_status").is_("on") & ~words("acl_id").any,
        "on needs annotation acl-id",
        "acl-id with the lists; or off",
    ),
    Refusal(
        "scheduler",
        _BY_COOKIES & text("scheduler").is_("sch", "tch"),
        say("{} is not offered for HTTP and HTTPS", text("scheduler")),
        "wrr, rr, wlc for HTTP and HTTPS listeners",
    ),
    Refusal(
        "sticky_session_type",
        _BY_COOKIES & text("sticky_session").is_("on") & text("sticky_session_type").is_("server") & ~given("cookie"),
        "server needs annotation cookie, the name of the backend's cookie",
        "cookie beside it; or insert",
    ),
    Refusal(
        "cert_id",
        _HTTPS.any & ~given("cert_id"),
        "an HTTPS listener needs a certificate",
        "the ID of a server certificate",
    ),
    Refusal(
        "domain_extensions",
        _HTTPS.any & ~ITEM.matches(r"[^:]*[^:\s][^:]*:.*\S.*"),
        say("'{}' is not a domain and a certificate", ITEM),
        "DOMAIN:CERTIFICATE",
        each=words("domain_extensions"),
    ),
    Refusal(
        "domain_extensions",
        _HTTPS.any,
        say("{} appears twice", ITEM),
        "one certificate each",
        each=words("domain_extensions").map(part(0)).repeated,
    ),
)

REFUSALS = (
    too_many_ports(),
    too_many_ranges(),
    *OF_BACKENDS,
    *refused_ranges(
        ~RANGES.where(ITEM.matches(r"\s*\S+/0\s*")).any,
        "CLB admits clients by access control lists, which the controller does not make",
        "none; or annotations acl-id, with a list of these ranges, and acl-status: on",
    ),
    *_OF_PORTS,
    *_OF_LISTENERS,
    Refusal(
        "additional_resource_tags",
        part(0, "=").is_(""),
        "a tag has no key",
        "key=value",
        each=words("additional_resource_tags"),
    ),
    *_TAGS.refusals(),
    Refusal(
        "spec",
        _OWN & given("spec") & ~_BY_SPEC,
        "a load balancer with instance-charge-type PayByCLCU, the default, has no specification",
        "none; or annotation instance-charge-type: PayBySpec",
    ),
    Refusal(
        "charge_type",
        _OWN & text("charge_type").is_("paybybandwidth") & ~_BY_SPEC,
        "a load balancer with instance-charge-type PayByCLCU, the default, is paid by traffic only",
        "paybytraffic; or annotation instance-charge-type: PayBySpec",
    ),
)

NAMINGS = (
    Naming(
        "subnet",
        "vswitch_id",
        one(text("vswitch_id")),
        _OWN & given("vswitch_id") & text("address_type").is_("intranet"),
    ),
    Naming("resource-group", "resource_group_id", one(text("resource_group_id")), _OWN & given("resource_group_id")),
    Naming("access-control-list", "acl_id", words("acl_id")),
    Naming("certificate", "cert_id", one(text("cert_id")), _HTTPS.any),
    Naming("certificate", "domain_extensions", words("domain_extensions").map(_FURTHER), _HTTPS.any),
)
"""The existing resources that annotations name."""
