"""The client: what it sends, pages, typed errors, which calls are made again, and that no secret shows."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from cloud_controller.cloud import AccessDenied, CloudError, Conflict, NotFound, Unavailable
from cloud_controller.clouds.alicloud.errors import error_code
from cloud_controller.retries import NeverReached
from tests.cloud_controller.clouds.alicloud.fake_http import AccessKey, OneKey, client, refusal


def test_parameters_are_flat_in_the_query_with_the_region_and_without_none() -> None:
    one, http = client({})

    one.call("slb", "CreateLoadBalancer", {"Tag": [{"Key": "a", "Value": "b"}], "Spec": None, "Protected": True})

    (sent,) = http.sent
    assert sent.query == {"RegionId": "cn-hangzhou", "Tag.1.Key": "a", "Tag.1.Value": "b", "Protected": "true"}
    assert (sent.url.partition("?")[0], sent.form) == ("https://slb.example/", {})
    assert (sent.headers["x-acs-version"], sent.headers["Host"]) == ("2014-05-15", "slb.example")


def test_parameters_of_nlb_are_in_the_form_body_and_tags_of_a_list_in_the_query() -> None:
    one, http = client({}, {})

    one.call(
        "nlb", "CreateListener", {"ListenerPort": 80, "ProxyProtocolV2Config": {"Ppv2PrivateLinkEpIdEnabled": True}}
    )
    one.call("nlb", "ListServerGroups", {"Tag": [{"Key": "a"}], "MaxResults": 100})

    created, listed = http.sent
    assert created.form["ProxyProtocolV2Config"] == '{"Ppv2PrivateLinkEpIdEnabled":true}'
    assert (created.form["ListenerPort"], created.query) == ("80", {})
    assert (listed.query, listed.form) == ({"Tag.1.Key": "a"}, {"MaxResults": "100", "RegionId": "cn-hangzhou"})


def test_jobs_are_asked_for_without_a_region() -> None:
    one, http = client({})

    one.call("nlb", "GetJobStatus", {"JobId": "j-1"})

    assert http.sent[0].query == {"JobId": "j-1"}


def test_other_apis_are_read_by_their_path() -> None:
    one, http = client({"config": "a kubeconfig"})

    answer = one.read("https://cs.example", "2015-12-15", "Describe", "/k8s/c-1/user_config", {"Private": "true"})

    (sent,) = http.sent
    assert answer == {"config": "a kubeconfig"}
    assert sent.url == "https://cs.example/k8s/c-1/user_config?Private=true"
    assert (sent.headers["x-acs-action"], sent.headers["x-acs-version"]) == ("Describe", "2015-12-15")
    assert "SignedHeaders=" in sent.headers["Authorization"]


def test_pages_by_number_end_at_the_total_count() -> None:
    one, http = client(
        {"PageNumber": 1, "TotalCount": 3, "Rows": {"Row": [{"n": 1}, {"n": 2}]}},
        {"PageNumber": 2, "TotalCount": 3, "Rows": {"Row": [{"n": 3}]}},
    )

    assert [row["n"] for row in one.pages("slb", "DescribeLoadBalancers", {"PageSize": 2}, "Rows.Row")] == [1, 2, 3]
    assert [sent.query.get("PageNumber") for sent in http.sent] == [None, "2"]


def test_pages_by_token_end_without_one_even_if_a_page_is_empty() -> None:
    one, http = client(
        {"NextToken": "t1", "TotalCount": 9, "Rows": []}, {"NextToken": "", "TotalCount": 9, "Rows": [{"n": 1}]}
    )

    assert [row["n"] for row in one.pages("nlb", "ListListeners", {"MaxResults": 100}, "Rows")] == [1]
    assert [sent.query.get("NextToken") for sent in http.sent] == [None, "t1"]


def test_an_empty_answer_is_an_empty_page() -> None:
    one, _ = client({"TotalCount": 0})

    assert [*one.pages("slb", "DescribeLoadBalancers", {}, "LoadBalancers.LoadBalancer")] == []


@pytest.mark.parametrize("answer", [{}, {"TotalCount": 3}, {"Rows": {}}, {"Code": "200"}])
def test_an_answer_without_its_list_is_not_an_empty_page(answer: dict[str, Any]) -> None:
    one, _ = client(*[answer] * 6)

    with pytest.raises(Unavailable, match=r"slb DescribeLoadBalancers: the response has no Rows\.Row"):
        list(one.pages("slb", "DescribeLoadBalancers", {}, "Rows.Row"))


def test_errors_are_typed_and_keep_code_and_request() -> None:
    one, _ = client(refusal("ResourceInUse.serverGroup"), (404, {"code": "ResourceNotFound.listener", "message": "m"}))

    with pytest.raises(
        Conflict, match=r"nlb DeleteServerGroup: ResourceInUse.serverGroup: no \(request R-1\)"
    ) as failed:
        one.call("nlb", "DeleteServerGroup", {})
    with pytest.raises(NotFound):
        one.call("nlb", "GetListenerAttribute", {})
    assert error_code(failed.value) == "ResourceInUse.serverGroup"


def test_a_read_is_repeated_after_a_lost_answer() -> None:
    one, http = client(Unavailable("lost"), {"ok": 1})

    assert one.call("ecs", "DescribeInstances", {}) == {"ok": 1}
    assert len(http.sent) == 2


def test_a_write_with_a_client_token_is_repeated_after_a_lost_answer_with_the_same_token() -> None:
    one, http = client(Unavailable("lost"), refusal("ServiceUnavailable", status=503), {"ok": 1})

    one.call("nlb", "CreateLoadBalancer", {"ClientToken": "t-1"})

    assert [sent.form["ClientToken"] for sent in http.sent] == ["t-1"] * 3
    assert len({sent.headers["x-acs-signature-nonce"] for sent in http.sent}) == 3


def test_a_write_without_a_token_is_repeated_only_if_it_had_no_effect() -> None:
    one, http = client(NeverReached("no"), refusal("Throttling.User"), Unavailable("lost"), {})

    with pytest.raises(Unavailable, match="lost"):
        one.call("slb", "DeleteLoadBalancer", {"LoadBalancerId": "lb-1"})

    assert len(http.sent) == 3


def test_a_write_whose_caller_says_so_is_repeated_after_a_lost_answer() -> None:
    one, http = client(Unavailable("lost"), {})

    one.call("vpc", "DeleteRouteEntries", {}, repeatable=True)

    assert len(http.sent) == 2


def test_a_throttled_call_waits_as_long_as_the_api_says() -> None:
    pauses: list[float] = []
    one, _ = client(refusal("Throttling.Api", headers={"x-acs-retry-after": "1500"}), {})
    one._sleep = pauses.append

    one.call("ecs", "DescribeInstances", {})

    assert 1.5 <= pauses[0] < 1.7


def test_an_answer_that_is_not_the_apis_leaves_the_effect_unknown() -> None:
    one, _ = client((502, b"<html>"), b"[]")

    for _ in range(2):
        with pytest.raises(Unavailable, match="not from the API"):
            one.call("slb", "DeleteLoadBalancer", {})


def test_a_refused_key_is_replaced_once() -> None:
    keys = [AccessKey("old"), AccessKey("new")]

    class Rotating:
        def key(self) -> AccessKey:
            return keys[0]

        def refused(self, key: AccessKey) -> bool:
            keys.remove(key)
            return True

    one, http = client(refusal("InvalidSecurityToken.Expired"), {}, credentials=Rotating())

    one.call("ecs", "DescribeInstances", {})

    assert ["Credential=new," in sent.headers["Authorization"] for sent in http.sent] == [False, True]


def test_a_session_token_is_a_signed_header_and_in_no_error() -> None:
    token = "CAIS-a-session-token"
    quoted = f"Signature mismatch. server string to sign is:x-acs-security-token:{token}"
    one, http = client(refusal("SignatureDoesNotMatch", quoted), credentials=OneKey(AccessKey(session_token=token)))

    with pytest.raises(AccessDenied, match="Signature mismatch") as failed:
        one.call("ecs", "DescribeInstances", {})

    assert http.sent[0].headers["x-acs-security-token"] == token
    assert ";x-acs-security-token;" in http.sent[0].headers["Authorization"]
    shown = "".join(traceback.format_exception(failed.value))
    assert token not in shown and AccessKey().secret not in shown and token not in repr(one)


def test_an_unknown_code_is_an_error_that_shows_it() -> None:
    one, _ = client(refusal("SomethingNew", "words"))

    with pytest.raises(CloudError, match="SomethingNew: words") as failed:
        one.call("ecs", "DescribeInstances", {})

    assert type(failed.value) is CloudError
