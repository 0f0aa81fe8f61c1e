"""Corrects moto's answers in the proxy where they differ from AWS's at the expense of a controller.

Each correction is what AWS documents. Without them a correct controller would make needless calls here, or miss an
attribute that every load balancer has; the results would then measure moto.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, urlencode
from xml.etree import ElementTree as ET

UNKNOWN: Mapping[str, bytes] = {
    # AWS's answer for machines of a type without topology.
    "ec2 DescribeInstanceTopology": (
        b'<DescribeInstanceTopologyResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
        b"<requestId>proxy</requestId><instanceSet/></DescribeInstanceTopologyResponse>"
    ),
}
"""Operations that moto lacks, with their answers."""

LEFT_OUT: Mapping[str, dict[str, str]] = {
    "elbv2 DescribeLoadBalancerAttributes": {"access_logs.s3.enabled": "false"},
    "elbv2 DescribeTargetGroupAttributes": {
        "deregistration_delay.connection_termination.enabled": "false",
        "preserve_client_ip.enabled": "true",
        "proxy_protocol_v2.enabled": "false",
    },
}
"""Attributes that every Network Load Balancer or target group of instances has, with AWS's default."""

# Only listeners that terminate TLS have a policy; moto gives one to all.
_POLICY_WITHOUT_TLS = re.compile(rb"(<Protocol>(?:TCP|UDP|TCP_UDP)</Protocol>)<SslPolicy>[^<]*</SslPolicy>")
_LISTENERS = frozenset({"elbv2 CreateListener", "elbv2 DescribeListeners", "elbv2 ModifyListener"})

_ELBV2 = "2015-12-01"
_NO_TARGET_GROUPS = (
    f'<DescribeTargetGroupsResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/{_ELBV2}/">'
    "<DescribeTargetGroupsResult><TargetGroups/></DescribeTargetGroupsResult></DescribeTargetGroupsResponse>"
).encode()

_CLASSIC = "{http://elasticloadbalancing.amazonaws.com/doc/2012-06-01/}"
_FIRST_HEALTH_CHECK = {"Interval": "30", "Timeout": "5", "UnhealthyThreshold": "2", "HealthyThreshold": "10"}


def corrected(operation: str, answer: bytes) -> bytes:
    """AWS's answer, given moto's."""
    for key, value in LEFT_OUT.get(operation, {}).items():
        if f"<Key>{key}</Key>".encode() not in answer:
            member = f"<member><Key>{key}</Key><Value>{value}</Value></member></Attributes>"
            answer = answer.replace(b"</Attributes>", member.encode())
    if operation in _LISTENERS:
        answer = _POLICY_WITHOUT_TLS.sub(rb"\1", answer)
    if operation == "elb DescribeLoadBalancers":
        answer = _with_health_checks(answer)
    return answer


def wrongly_refused(operation: str, body: bytes, answer: bytes, ask: Callable[[bytes], bytes]) -> bytes | None:
    """AWS's answer to a call that moto alone refuses; None: AWS refuses it, too. `ask`: moto's answer to another call.

    Only a controller that was interrupted makes such calls: by an error, a crash or a limit.
    """
    form = dict(parse_qsl(body.decode()))
    if operation == "elbv2 DescribeTargetGroups" and "LoadBalancerArn" in form and _has(answer, "TargetGroupNotFound"):
        return _NO_TARGET_GROUPS
    if operation == "elbv2 CreateTargetGroup" and _has(answer, "DuplicateTargetGroupName"):
        # AWS returns the present one if its settings are the same.
        asked = {"Action": "DescribeTargetGroups", "Version": _ELBV2, "Names.member.1": form["Name"]}
        found = ask(urlencode(asked).encode())
        if all(f"<{key}>{form.get(key)}</{key}>".encode() in found for key in ("Protocol", "Port", "VpcId")):
            return found.replace(b"DescribeTargetGroups", b"CreateTargetGroup")
    return None


def _has(answer: bytes, code: str) -> bool:
    return f"<Code>{code}</Code>".encode() in answer


def _with_health_checks(answer: bytes) -> bytes:
    """A classic load balancer has a health check from its creation, of its first listener's port."""
    root = ET.fromstring(answer)
    if not root.tag.startswith(_CLASSIC):
        return answer
    for balancer in root.iterfind(f".//{_CLASSIC}LoadBalancerDescriptions/{_CLASSIC}member"):
        port = balancer.findtext(f".//{_CLASSIC}InstancePort")
        if port is None or balancer.find(f"{_CLASSIC}HealthCheck") is not None:
            continue
        check = ET.SubElement(balancer, f"{_CLASSIC}HealthCheck")
        for name, value in {"Target": f"TCP:{port}", **_FIRST_HEALTH_CHECK}.items():
            ET.SubElement(check, f"{_CLASSIC}{name}").text = value
    return ET.tostring(root, default_namespace=_CLASSIC.strip("{}"))
