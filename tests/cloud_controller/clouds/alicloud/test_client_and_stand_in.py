"""The client against the stand-in, which verifies signatures: over HTTP, and with the key of a role."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import AccessDenied
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.alicloud.config import AccessKey
from cloud_controller.clouds.alicloud.credentials import FixedKey, RoleKey
from local.alicloud.account import ACCESS_KEY, SECRET
from local.alicloud.keys import lend_key
from tests.cloud_controller.clouds.alicloud.account import Account, StandInHttp

ALL = ("*",)


def lent(account: Account, seconds: float = 3600.0) -> AccessKey:
    with account.standin.changing() as world:
        key, body = lend_key(world, "ccm", ALL, seconds)
    return AccessKey(key, body["secret"], body["token"])


@pytest.mark.integration
def test_a_signed_request_over_http_is_accepted_and_one_with_a_wrong_secret_refused(
    alicloud: Account, alicloud_url: str
) -> None:
    alicloud.machine("one", {"a b": "c*~/é"})
    asked = {"Tag": [{"Key": "a b", "Value": "c*~/é"}], "MaxResults": 10}
    right = Client("cn-hangzhou", lambda _: alicloud_url, FixedKey(AccessKey(ACCESS_KEY, SECRET)))
    wrong = Client("cn-hangzhou", lambda _: alicloud_url, FixedKey(AccessKey(ACCESS_KEY, f"{SECRET}-")))

    assert right.call("ecs", "DescribeInstances", asked)["TotalCount"] == 1
    with pytest.raises(AccessDenied, match="SignatureDoesNotMatch"):
        wrong.call("ecs", "DescribeInstances", asked)


def test_the_key_of_a_role_is_accepted_and_replaced_when_it_has_expired_early(alicloud: Account) -> None:
    keys = [lent(alicloud, -1), lent(alicloud)]
    credentials = RoleKey(lambda: (keys.pop(0), 1e12))
    client = Client("cn-hangzhou", lambda _: "http://stand-in", credentials)
    client._http = StandInHttp(alicloud.standin)  # type: ignore[assignment]

    assert client.call("ecs", "DescribeInstances", {})["TotalCount"] == 0
    assert keys == []
