"""What annotations say of listeners: TLS, the protocol behind them, the proxy protocol."""

from __future__ import annotations

from cloud_controller.clouds.aws.annotation_entries import CLASSIC, NETWORK, entry

LISTENERS = (
    entry(
        "ssl-cert",
        "list",
        "listener.certificates",
        "The certificate of TLS listeners, by its ARN in ACM or IAM. A network load balancer takes several: the first"
        " is for clients that name no host, the others are chosen by the host's name.",
        applies_to="every TCP listener, or those of `ssl-ports`",
        default_note="none: no TLS",
        example="arn:aws:acm:us-west-2:123456789012:certificate/0123-4567",
        names="certificate",
        upstream="1.12",
        controller="2.0",
        source="requirements 001 and 002; cloud-provider-aws",
    ),
    entry(
        "ssl-ports",
        "list",
        "listener.protocol",
        "Which ports speak TLS where there is a certificate: numbers or names of the Service's ports, `*` for all.",
        applies_to="TCP listeners",
        default_note="all",
        example="443,metrics",
        upstream="1.12",
        controller="2.0",
        source="requirements 002; cloud-provider-aws",
    ),
    entry(
        "ssl-negotiation-policy",
        "text",
        "listener.ssl_policy",
        "AWS's security policy, by name: protocols and ciphers that TLS listeners offer.",
        applies_to="TLS listeners",
        pattern=r"[A-Za-z0-9-]{1,80}",
        form="the name of a security policy of AWS",
        default_note="AWS's own, ELBSecurityPolicy-2016-08, which still allows TLS 1.0",
        example="ELBSecurityPolicy-TLS13-1-2-2021-06",
        upstream="1.12",
        controller="2.0",
        source="requirements 002; cloud-provider-aws",
    ),
    entry(
        "alpn-policy",
        "text",
        "listener.alpn_policy",
        "Which application protocols TLS listeners offer to clients.",
        applies_to=f"TLS listeners of {NETWORK}",
        allowed=("HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred", "None"),
        default_note="None",
        controller="2",
    ),
    entry(
        "backend-protocol",
        "text",
        "listener.instance_protocol",
        "What is spoken behind the listener. A classic load balancer reads `http` and `https`: with a certificate its"
        " listener is HTTPS, without one `http` makes it HTTP; `ssl` and `tcp` are passed on behind TLS. On a network"
        " one only `ssl` does anything: TLS to the targets behind a TLS listener.",
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
        "Attributes of one listener under AWS's names, as key=value: PROTOCOL is the listener's, PORT the Service's"
        " port. AWS has one, `tcp.idle_timeout.seconds` of TCP listeners, 60 to 6,000; one that is taken off again goes"
        " back to AWS's 350.",
        argument="listener_attributes",
        suffix="PROTOCOL-PORT",
        suffix_pattern="(TCP|UDP|TCP_UDP|TLS)-[1-9][0-9]{0,4}",
        suffix_example="TCP-80",
        applies_to=f"one listener of {NETWORK}",
        default_note="AWS's own",
        example="tcp.idle_timeout.seconds=600",
        controller="2",
    ),
    entry(
        "proxy-protocol",
        "text",
        "listener.proxy_protocol",
        "`*`: targets are told the client's address by the proxy protocol, version 1 from a classic load balancer and 2"
        " from a network one (where upstream pays no heed to it).",
        applies_to=f"every listener of {CLASSIC}; every target group of network ones",
        allowed=("*",),
        default_note="none",
        upstream="1.12",
        controller="2.0",
        source="requirements 002; cloud-provider-aws",
    ),
)
