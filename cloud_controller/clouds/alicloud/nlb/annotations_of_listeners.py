"""Annotations of NLB's listeners: protocols, limits, certificates, proxy protocol."""

from __future__ import annotations

from cloud_controller.clouds.alicloud.annotation_entries import ON_OFF
from cloud_controller.clouds.alicloud.nlb.annotation_entries import LISTED, entry
from cloud_controller.load_balancers.annotation import SELECTS
from cloud_controller.load_balancers.refusals import MOST_PORTS

_EVERY = "every listener"
_TLS = "every TCPSSL listener"
_PROXY = "With `proxy-protocol: on`: whether the header tells backends the ID of "

LISTENERS = (
    entry(
        "protocol-port",
        "list",
        "listener.protocol",
        "The protocol of single ports, as PROTOCOL:PORT. The protocols are tcp, udp and tcpssl (TLS that the load"
        " balancer terminates, on a TCP port of the Service). A change between tcp and tcpssl makes the listener anew.",
        applies_to="the listeners of these ports",
        default_note="the protocol of the Service's port",
        example="tcpssl:443,tcp:80",
        names_nothing=SELECTS,
        most=MOST_PORTS,
    ),
    entry(
        "listener-port-range",
        "list",
        "listener.port_range",
        "A range of ports that one listener serves instead of a port of the Service, as FIRST-LAST:PORT. Traffic goes"
        " to the same port of the pods, so the Service needs `backend-type: eni`. A change makes the listener anew.",
        applies_to="the listeners of these ports",
        default_note="none",
        example="1000-2000:80",
        source=LISTED,
        names_nothing=SELECTS,
        most=MOST_PORTS,
    ),
    entry(
        "cps",
        "number",
        "listener.cps",
        "The most new connections a second, in each zone. 0: no limit.",
        applies_to=_EVERY,
        minimum=0,
        maximum=1_000_000,
        unit="connections a second",
        default=0,
    ),
    entry(
        "idle-timeout",
        "number",
        "listener.idle_timeout",
        "The time after which an idle connection is closed. UDP listeners accept at most 20 seconds and keep 20 if the"
        " value is higher.",
        applies_to=_EVERY,
        minimum=10,
        maximum=900,
        unit="seconds",
        default=900,
        default_note="900; UDP: 20",
    ),
    entry(
        "proxy-protocol",
        "text",
        "listener.proxy_protocol",
        "Whether the load balancer sends a header of the proxy protocol, version 2, to backends, which must expect it.",
        applies_to=_EVERY,
        allowed=ON_OFF,
        default="off",
    ),
    *(
        entry(
            f"ppv2-pvl-{name}-enabled",
            "text",
            f"listener.ppv2_{name.replace('-', '_')}",
            f"{_PROXY}{what}.",
            applies_to=_EVERY,
            allowed=ON_OFF,
            default="off",
            source=LISTED,
        )
        for name, what in (
            ("ep-id", "the client's PrivateLink endpoint"),
            ("eps-id", "the PrivateLink endpoint service"),
            ("vpc-id", "the client's VPC"),
        )
    ),
    entry(
        "cert-id",
        "text",
        "listener.certificates",
        "The server certificate, by its ID in Certificate Management Service. Required for TCPSSL listeners; TCP and"
        " UDP listeners have none.",
        applies_to=_TLS,
        pattern="[0-9A-Za-z-]{1,64}",
        form="the ID of a certificate",
        default_note="none",
        example="1234567-cn-hangzhou",
    ),
    entry(
        "additional-cert-ids",
        "list",
        "listener.additional_certificates",
        "Further server certificates, which the listener chooses from by server name.",
        applies_to=_TLS,
        default_note="none",
        example="1234568-cn-hangzhou,1234569-cn-hangzhou",
        source=LISTED,
    ),
    entry(
        "cacert",
        "text",
        "listener.ca_enabled",
        "Whether clients must have a certificate of the CA in `cacert-id` (mutual TLS).",
        applies_to=_TLS,
        allowed=ON_OFF,
        default="off",
        restricts=True,
        harmless=("off",),
    ),
    entry(
        "cacert-id",
        "text",
        "listener.ca_certificates",
        "The CA certificate against which clients' certificates are checked, with `cacert: on`.",
        applies_to=_TLS,
        pattern="[0-9A-Za-z-]{1,64}",
        form="the ID of a CA certificate",
        default_note="none",
        example="1ef1-2a3b-4c5d",
    ),
    entry(
        "tls-cipher-policy",
        "text",
        "listener.security_policy",
        "The TLS versions and ciphers: a system policy, such as tls_cipher_policy_1_2_strict, or the ID of an own one.",
        applies_to=_TLS,
        pattern=r"tls_cipher_policy_1_[0-2](_strict(_with_1_3)?)?|tls-[0-9a-z]{1,64}",
        form="tls_cipher_policy_1_0, tls_cipher_policy_1_1, tls_cipher_policy_1_2, tls_cipher_policy_1_2_strict,"
        " tls_cipher_policy_1_2_strict_with_1_3, or the ID of a policy (tls-…)",
        default="tls_cipher_policy_1_0",
        example="tls_cipher_policy_1_2_strict",
    ),
    entry(
        "alpn",
        "text",
        "listener.alpn",
        "Whether the application protocol is negotiated (ALPN), as `alpn-policy` says.",
        applies_to=_TLS,
        allowed=ON_OFF,
        default="off",
    ),
    entry(
        "alpn-policy",
        "text",
        "listener.alpn_policy",
        "The versions of HTTP that ALPN offers, and which it prefers. Only with `alpn: on`.",
        applies_to=_TLS,
        allowed=("HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred"),
        any_case=True,
        default="HTTP1Only",
    ),
)
