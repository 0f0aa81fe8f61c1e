"""The benchmarks' proxy in front of moto: its counts, and its answers in place of moto's."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from benchmarks.aws.moto_gaps import corrected, wrongly_refused
from benchmarks.aws.proxy import CALLS_PATH, LIMITS_PATH, Proxy, operation

ERROR = b"<Response><Errors><Error><Code>InvalidInstanceID.NotFound</Code></Error></Errors></Response>"


def signed(service: str) -> dict[str, str]:
    return {"Authorization": f"AWS4-HMAC-SHA256 Credential=KEY/20261121/us-east-1/{service}/aws4_request, Signature=0"}


@pytest.fixture
def proxy() -> Iterator[str]:
    """In front of a cloud that knows no instances and answers everything else."""

    class Cloud(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            status, body = (400, ERROR) if b"DescribeInstances" in asked else (200, b"<fine/>")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Cloud) as cloud:
        with Proxy(0, f"http://127.0.0.1:{cloud.server_address[1]}", latency=0) as server:
            for each in (cloud, server):
                threading.Thread(target=each.serve_forever, args=(0.01,), daemon=True).start()
            yield f"http://127.0.0.1:{server.server_address[1]}"
            server.shutdown()
        cloud.shutdown()


def call(url: str, action: str) -> bytes:
    with urlopen(Request(url, f"Action={action}&Version=2016-11-15".encode(), signed("ec2"))) as answer:
        body: bytes = answer.read()
        return body


def counted(url: str) -> dict[str, Any]:
    with urlopen(url + CALLS_PATH) as answer:
        reported: dict[str, Any] = json.load(answer)
        return reported


@pytest.mark.parametrize(
    ("service", "body", "expected"),
    [
        ("ec2", b"Action=DescribeVpcs&Version=2016-11-15", "ec2 DescribeVpcs"),
        ("elasticloadbalancing", b"Action=DescribeTags&Version=2015-12-01", "elbv2 DescribeTags"),
        ("elasticloadbalancing", b"Action=DescribeTags&Version=2012-06-01", "elb DescribeTags"),
    ],
)
def test_a_call_is_named_by_its_service_and_operation(service: str, body: bytes, expected: str) -> None:
    assert operation(signed(service), body) == expected


def test_a_call_of_json_is_named_by_its_target() -> None:
    assert operation(signed("acm") | {"X-Amz-Target": "CertificateManager.ListCertificates"}, b"{}") == (
        "acm ListCertificates"
    )


def test_calls_are_passed_on_and_counted(proxy: str) -> None:
    answers = [call(proxy, "DescribeVpcs") for _ in range(2)]

    assert answers == [b"<fine/>", b"<fine/>"]
    assert counted(proxy)["calls"] == {"ec2 DescribeVpcs": 2}


def test_failed_calls_are_counted_apart_by_their_code(proxy: str) -> None:
    with pytest.raises(HTTPError):
        call(proxy, "DescribeInstances")

    reported = counted(proxy)
    assert (reported["calls"], reported["failed"]) == ({}, {"ec2 DescribeInstances InvalidInstanceID.NotFound": 1})


def test_an_operation_that_moto_lacks_is_answered_and_counted(proxy: str) -> None:
    answer = call(proxy, "DescribeInstanceTopology")

    assert b"<instanceSet/>" in answer
    assert counted(proxy)["calls"] == {"ec2 DescribeInstanceTopology": 1}


def test_calls_over_the_limit_are_refused_and_counted_once_limits_are_enforced(proxy: str) -> None:
    for _ in range(51):
        call(proxy, "CreateTags")
    urlopen(Request(proxy + LIMITS_PATH, method="PUT")).close()

    with pytest.raises(HTTPError, match="503"):
        for _ in range(60):
            call(proxy, "CreateTags")

    reported = counted(proxy)
    assert reported["failed"] == {"ec2 CreateTags RequestLimitExceeded": 1}
    assert reported["calls"]["ec2 CreateTags"] >= 101


def test_a_listener_without_tls_has_no_policy() -> None:
    listener = b"<member><Protocol>%s</Protocol><SslPolicy>P</SslPolicy></member>"

    answer = corrected("elbv2 DescribeListeners", listener % b"TCP" + listener % b"TLS")

    assert answer == b"<member><Protocol>TCP</Protocol></member>" + listener % b"TLS"


def test_an_attribute_that_moto_leaves_out_has_its_default() -> None:
    left_out = b"<Attributes><member><Key>access_logs.s3.bucket</Key><Value/></member></Attributes>"

    answer = corrected("elbv2 DescribeLoadBalancerAttributes", left_out)

    assert b"<member><Key>access_logs.s3.enabled</Key><Value>false</Value></member></Attributes>" in answer


def test_an_attribute_from_moto_stays() -> None:
    reported = b"<Attributes><member><Key>access_logs.s3.enabled</Key><Value>true</Value></member></Attributes>"

    assert corrected("elbv2 DescribeLoadBalancerAttributes", reported) == reported


def test_a_classic_load_balancer_has_a_health_check_from_the_start() -> None:
    space = 'xmlns="http://elasticloadbalancing.amazonaws.com/doc/2012-06-01/"'
    balancer = (
        "<member><ListenerDescriptions><member><InstancePort>30000</InstancePort></member></ListenerDescriptions>"
    )
    answer = corrected(
        "elb DescribeLoadBalancers",
        f"<R {space}><LoadBalancerDescriptions>{balancer}</member></LoadBalancerDescriptions></R>".encode(),
    )

    assert b"<HealthCheck><Target>TCP:30000</Target><Interval>30</Interval>" in answer


def refused(code: str) -> bytes:
    return f"<ErrorResponse><Error><Code>{code}</Code></Error></ErrorResponse>".encode()


def created(found: bytes) -> bytes | None:
    body = b"Action=CreateTargetGroup&Name=web&Protocol=TCP&Port=80&VpcId=vpc-1"
    return wrongly_refused("elbv2 CreateTargetGroup", body, refused("DuplicateTargetGroupName"), lambda _: found)


def test_a_target_group_that_exists_is_the_answer_to_its_second_creation() -> None:
    found = b"<DescribeTargetGroupsResult><Protocol>TCP</Protocol><Port>80</Port><VpcId>vpc-1</VpcId>"

    assert created(found) == found.replace(b"DescribeTargetGroups", b"CreateTargetGroup")
    assert created(found.replace(b"80", b"81")) is None


def test_a_load_balancer_without_target_groups_has_an_empty_list_of_them() -> None:
    def listed(body: bytes) -> bytes | None:
        return wrongly_refused("elbv2 DescribeTargetGroups", body, refused("TargetGroupNotFound"), lambda _: b"")

    assert b"<TargetGroups/>" in (listed(b"Action=DescribeTargetGroups&LoadBalancerArn=arn") or b"")
    assert listed(b"Action=DescribeTargetGroups&Names.member.1=web") is None
