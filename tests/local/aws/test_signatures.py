"""Only requests signed with a known key, in the header or in the query, are accepted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local.aws.signatures import Refused, signature_of, verify
from local.http_messages import Request

KEY, SECRET = "AKIAEXAMPLEEXAMPLE12", "a-secret"
SECRETS = {KEY: SECRET}


URL = "http://127.16.0.1:7070/clusters/a%20b?x=1&a=~%2B"


def as_received(signed: AWSRequest, body: bytes = b"") -> Request:
    """A request signed by botocore, as the server receives it."""
    parts = urlsplit(str(signed.url))
    headers = {name.lower(): str(value) for name, value in signed.headers.items()} | {"host": parts.netloc}
    return Request(str(signed.method), parts.path, parts.query, headers, body)


def signed_in_header(body: bytes = b"", secret: str = SECRET) -> Request:
    request = AWSRequest("POST", URL, headers={"X-Some": "  two   words "}, data=body)
    SigV4Auth(Credentials(KEY, secret), "eks", "eu-central-1").add_auth(request)
    return as_received(request, body)


def presigned(expires: int = 60, service: str = "sts") -> Request:
    request = AWSRequest("GET", URL, headers={"x-k8s-aws-id": "c1"})
    SigV4QueryAuth(Credentials(KEY, SECRET), service, "eu-central-1", expires=expires).add_auth(request)
    return as_received(request)


def refusal(request: Request, now: datetime | None = None) -> str:
    """AWS's error code."""
    with pytest.raises(Refused) as raised:
        signature = signature_of(request)
        assert signature is not None
        verify(request, signature, SECRETS.get, now)
    return raised.value.code


@pytest.mark.parametrize("signed", [signed_in_header, lambda: signed_in_header(b'{"name": "c1"}'), presigned])
def test_a_signature_of_the_aws_sdk_is_valid(signed: Callable[[], Request]) -> None:
    request = signed()
    signature = signature_of(request)

    assert signature is not None
    assert signature.access_key == KEY
    verify(request, signature, SECRETS.get)


def test_a_presigned_request_can_be_passed_on_as_one_signed_in_its_header() -> None:
    request = presigned()
    signature = signature_of(request)
    assert signature is not None

    again = signature_of(replace(request, query="", headers={"authorization": signature.as_header()}))

    assert again is not None
    assert (again.access_key, again.scope, again.signed_headers) == (
        signature.access_key,
        signature.scope,
        ("host", "x-k8s-aws-id"),
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"body": b"another"}, "SignatureDoesNotMatch"),
        ({"method": "DELETE"}, "SignatureDoesNotMatch"),
        ({"path": "/clusters/other"}, "SignatureDoesNotMatch"),
        ({"query": "x=2&a=~%2B"}, "SignatureDoesNotMatch"),
    ],
)
def test_a_request_changed_in_transit_is_refused(change: dict[str, str | bytes], code: str) -> None:
    assert refusal(replace(signed_in_header(b"body"), **change)) == code  # type: ignore[arg-type]


def test_a_body_that_differs_from_the_signed_one_is_refused_whatever_its_header() -> None:
    request = presigned()
    of_nothing = {"x-amz-content-sha256": hashlib.sha256(b"").hexdigest()}

    changed = replace(request, headers={**request.headers, **of_nothing}, body=b"Action=DeleteRole")

    assert refusal(changed) == "SignatureDoesNotMatch"


def test_a_changed_signed_header_is_refused() -> None:
    request = presigned()

    assert refusal(replace(request, headers={**request.headers, "x-k8s-aws-id": "c2"})) == "SignatureDoesNotMatch"


def test_a_presigned_request_expires_when_it_says() -> None:
    assert refusal(presigned(60, "ec2"), datetime.now(UTC) + timedelta(seconds=70)) == "RequestExpired"


def test_a_presigned_request_of_sts_is_valid_for_a_quarter_of_an_hour() -> None:
    request = presigned(60)
    signature = signature_of(request)
    assert signature is not None

    verify(request, signature, SECRETS.get, datetime.now(UTC) + timedelta(minutes=14))

    assert refusal(request, datetime.now(UTC) + timedelta(minutes=16)) == "RequestExpired"


def test_a_signed_request_cannot_be_replayed_another_day() -> None:
    assert refusal(signed_in_header(), datetime.now(UTC) + timedelta(days=1)) == "RequestExpired"


def test_a_request_without_a_signature_has_none() -> None:
    assert signature_of(Request("GET", "/", "Action=GetCallerIdentity", {}, b"")) is None


@pytest.mark.parametrize("header", ["Basic abc", "AWS4-HMAC-SHA256 Credential=x, SignedHeaders=host, Signature=y"])
def test_a_malformed_signature_is_refused(header: str) -> None:
    assert refusal(Request("GET", "/", "", {"authorization": header}, b"")) == "IncompleteSignature"
