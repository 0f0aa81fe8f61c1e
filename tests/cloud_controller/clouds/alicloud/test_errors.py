"""What Alibaba Cloud's errors say, besides the meaning of their codes, which the contract suite knows."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import Unavailable
from cloud_controller.clouds.alicloud.errors import of_code


def test_an_error_has_the_apis_code_and_words() -> None:
    error = of_code("IncorrectStatus.loadBalancer", "words", "slb CreateLoadBalancer")

    assert str(error) == "Alibaba Cloud: slb CreateLoadBalancer: IncorrectStatus.loadBalancer: words"


def test_a_failing_server_leaves_the_effect_unknown_whatever_its_code() -> None:
    assert type(of_code("InvalidParameter", "words", "slb CreateLoadBalancer", 500)) is Unavailable


@pytest.mark.parametrize(
    "quoted",
    [
        "server string to sign is:POST&%2F&SecurityToken%3Da-session-token",
        "server StringToSign is [ACS3-HMAC] server CanonicalRequest is [x-acs-security-token:a-session-token]",
        "server CanonicalRequest is [x-acs-security-token:a-session-token]",
    ],
)
def test_what_the_api_quotes_of_the_request_is_in_no_error(quoted: str) -> None:
    told = str(of_code("SignatureDoesNotMatch", f"The signature does not match. {quoted}", "slb CreateLoadBalancer"))

    assert "The signature does not match." in told
    assert "a-session-token" not in told
