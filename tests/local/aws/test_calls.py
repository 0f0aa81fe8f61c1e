"""A request must name its call in one place: moto would look in another."""

from __future__ import annotations

from typing import Any

import pytest

from local.aws.calls import call_of, speaks_json
from local.aws.signatures import Refused
from local.http_messages import Request

FORM = b"Action=DescribeVpcs&Version=2016-11-15"


def request(**changed: Any) -> Request:
    settings: dict[str, Any] = {"method": "POST", "path": "/", "query": "", "headers": {}, "body": b""}
    return Request(**{**settings, **changed})


@pytest.mark.parametrize(
    ("asked", "service", "called", "only_reads"),
    [
        pytest.param(request(body=FORM), "ec2", "ec2:DescribeVpcs", True, id="in a form"),
        pytest.param(request(body=b"Action=CreateVpc"), "ec2", "ec2:CreateVpc", False, id="a change"),
        pytest.param(request(method="GET", query=FORM.decode()), "ec2", "ec2:DescribeVpcs", True, id="presigned"),
        pytest.param(
            request(headers={"x-amz-target": "AmazonSSM.GetParameter"}, body=b'{"Name": "a"}'),
            *("ssm", "ssm:GetParameter", True),
            id="in a header",
        ),
        pytest.param(request(method="GET", path="/clusters"), "eks", "eks:", True, id="EKS by its path"),
        pytest.param(request(path="/clusters", body=b'{"name": "a"}'), "eks", "eks:", False, id="a change of EKS"),
    ],
)
def test_a_call_is_read_from_where_its_protocol_puts_it(
    asked: Request, service: str, called: str, only_reads: bool
) -> None:
    call = call_of(asked, service)

    assert (str(call), call.only_reads) == (called, only_reads)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(request(), id="nowhere"),
        pytest.param(request(headers={"action": "CreateVpc"}), id="in a header of its own"),
        pytest.param(request(body=FORM, query="Action=CreateVpc"), id="form and query"),
        pytest.param(request(body=b"RoleArn=mine", query="Action=AssumeRole&RoleArn=a"), id="parameters beside it"),
        pytest.param(request(body=b"Action=CreateVpc&" + FORM), id="twice"),
        pytest.param(request(body=b"Action=CreateVpc", headers={"x-amz-target": "EC2.DescribeVpcs"}), id="a target"),
        pytest.param(request(body=b'{"a": "&Action=CreateVpc&"}', headers={"x-amz-target": "A.Get"}), id="in JSON"),
    ],
)
def test_a_request_that_names_no_operation_or_several_is_refused(asked: Request) -> None:
    with pytest.raises(Refused):
        call_of(asked, "ec2")


@pytest.mark.parametrize(
    ("asked", "in_json"),
    [
        pytest.param(request(headers={"content-type": "application/x-www-form-urlencoded; charset=utf-8"}), False),
        pytest.param(request(method="GET", query=FORM.decode()), False),
        pytest.param(request(headers={"content-type": "application/x-amz-json-1.1"}), True),
        pytest.param(request(method="GET", path="/clusters", query="maxResults=9"), True),
    ],
)
def test_an_error_has_the_format_of_the_clients_protocol(asked: Request, in_json: bool) -> None:
    assert speaks_json(asked) is in_json


def test_the_first_of_duplicate_parameters_counts_as_in_moto() -> None:
    assert call_of(request(body=FORM + b"&a=&a=2"), "ec2").parameters["a"] == ""


def test_an_unsupported_service_is_refused_by_name() -> None:
    with pytest.raises(Refused, match="service 's3' is not one of autoscaling, ec2"):
        call_of(request(method="GET", path="/bucket"), "s3")
