"""Annotations of listeners: TLS, backend protocol, attributes, proxy protocol."""

from __future__ import annotations

from cloud_controller.clouds.aws.annotation_entries import CLASSIC, NETWORK, entry
from cloud_controller.load_balancers.annotation import OFFERED, SELECTS, VALUE

LISTENERS = (
    entry(
        "ssl-cert",
        "list",
        "listener.certificates",
        "The ARN of the TLS listeners' certificate, in ACM or IAM. A network load balancer takes several: the"
        " first is the default certificate, the others are chosen by SNI.",
        applies_to="every TCP listener, or those in `ssl-ports`",
        default_note="none (no TLS)",
        example="arn:aws:acm:us-west-2:123456789012:certificate/0123-4567",
        upstream="1.12",
        controller="2.0",
        source="requirements 001 and 002; cloud-provider-aws",
    ),
    entry(
        "ssl-ports",
        "list",
        "listener.protocol",
        "The ports that use TLS if `ssl-cert` is set: numbers or names of the Service's ports, `*` for all.",
        applies_to="TCP listeners",
        default_note="all",
        example="443,metrics",
        upstream="1.12",
        controller="2.0",
        source="requirements 002; cloud-provider-aws",
        names_nothing=SELECTS,
    ),
    entry(
        "ssl-negotiation-policy",
        "text",
        "listener.ssl_policy",
        "The security policy of the TLS listeners: the protocols and ciphers that they offer to clients.",
        applies_to="TLS listeners",
        pattern=r"[A-Za-z0-9-]{1,80}",
        form="the name of an ELB security policy",
        default_note="AWS's default, ELBSecurityPolicy-2016-08, which still allows TLS 1.0",
        example="ELBSecurityPolicy-TLS13-1-2-2021-06",
        upstream="1.12",
        controller="2.0",
        source="requirements 002; cloud-provider-aws",
        names_nothing=OFFERED,
    ),
    entry(
        "alpn-policy",
        "text",
        "listener.alpn_policy",
        "The ALPN policy of the TLS listeners.",
        applies_to=f"TLS listeners of {NETWORK}",
        allowed=("HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred", "None"),
        default_note="None",
        controller="2",
    ),
    entry(
        "backend-protocol",
        "text",
        "listener.instance_protocol",
        "The protocol between the load balancer and its targets. Classic load balancers: with a certificate,"
        " `http` and `https` make the listener HTTPS, `ssl` and `tcp` make it SSL; without one, `http` makes it"
        " HTTP. Network load balancers: only `ssl` has an effect, TLS to the targets of a TLS listener.",
        applies_to="every TCP listener",
        allowed=("http", "https", "ssl", "tcp"),
        any_case=True,
        default_note="tcp",
        upstream="1.12",
        controller="2.0",
        source="requirements 001; cloud-provider-aws",
    ),
    entry(
        "listener-attributes.PROTOCOL-PORT",
        "list",
        "listener.attributes",
        "Attributes of one listener by their AWS names, as key=value. PROTOCOL is the listener's protocol, PORT"
        " the Service's port. AWS has one: `tcp.idle_timeout.seconds` of TCP listeners, 60 to 6,000. If it is"
        " removed, the listener returns to AWS's default of 350.",
        argument="listener_attributes",
        suffix="PROTOCOL-PORT",
        suffix_pattern="(TCP|UDP|TCP_UDP|TLS)-[1-9][0-9]{0,4}",
        suffix_example="TCP-80",
        applies_to=f"one listener of {NETWORK}",
        default_note="AWS's defaults",
        example="tcp.idle_timeout.seconds=600",
        controller="2",
        names_nothing=VALUE,
    ),
    entry(
        "proxy-protocol",
        "text",
        "listener.proxy_protocol",
        "`*`: the load balancer sends the client's address to the targets by the proxy protocol: version 1 on"
        " classic load balancers, version 2 on network load balancers (where cloud-provider-aws ignores this"
        " annotation).",
        applies_to=f"every listener of {CLASSIC}; every target group of {NETWORK}",
        allowed=("*",),
        default_note="none",
        upstream="1.12",
        controller="2.0",
        source="requirements 002; cloud-provider-aws",
    ),
)
