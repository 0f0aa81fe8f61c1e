"""Who may call what, and with which parameters; errors have the cloud's codes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from urllib.parse import urlencode

import pytest

from local.alicloud.account import ACCESS_KEY, SECRET, as_text
from local.alicloud.keys import add_key, lend_key
from local.alicloud.signatures import ACS3, acs3
from local.http_messages import Request
from local.standin.faults import Fault
from tests.local.alicloud.caller import Lost, Refused, call, request
from tests.local.alicloud.conftest import Site


def code_of(site: Site, sent: Request) -> str:
    """The code of the refusal; `` for an answer."""
    return str(json.loads(site.cloud.answer(sent).body).get("Code", ""))


def signed(
    site: Site, action: str, version: str, query: dict[str, str], form: dict[str, str], **headers: str
) -> Request:
    """A request in the newer style."""
    body = urlencode(form).encode()
    unsigned = {
        "host": "test",
        "x-acs-action": action,
        "x-acs-version": version,
        "x-acs-date": as_text(site.clock()),
        "x-acs-signature-nonce": f"{action}{sorted(query.items())}{body!r}",
        "x-acs-content-sha256": hashlib.sha256(body).hexdigest(),
        "content-type": "application/x-www-form-urlencoded",
        **headers,
    }
    sent = Request("POST", "/", urlencode(query), unsigned, body)
    names = sorted(name for name in unsigned if name == "host" or name.startswith("x-acs-"))
    value = acs3(sent, list(query.items()), names, SECRET)
    authorization = f"{ACS3} Credential={ACCESS_KEY},SignedHeaders={';'.join(names)},Signature={value}"
    return replace(sent, headers={**unsigned, "authorization": authorization})


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"key": "nobody"}, "InvalidAccessKeyId.NotFound"),
        ({"secret": "wrong"}, "SignatureDoesNotMatch"),
        ({"Timestamp": "2020-01-01T00:00:00Z"}, "InvalidTimeStamp.Expired"),
        ({"Timestamp": "now"}, "InvalidTimeStamp.Format"),
        ({"SignatureNonce": ""}, "MissingSignatureNonce"),
        ({"SignatureMethod": "HMAC-MD5"}, "InvalidParameter.SignatureMethod"),
        ({"Version": "2011-11-11"}, "InvalidVersion"),
        ({"Action": "RunInstances"}, "InvalidAction.NotFound"),
        ({"Format": "XML"}, "NotSimulated"),
        ({"RegionId": "eu-central-1"}, "InvalidRegionId.NotFound"),
    ],
)
def test_a_request_of_the_older_style_is_refused_for_what_is_wrong_with_it(
    site: Site, changed: dict[str, str], code: str
) -> None:
    assert code_of(site, request(site.cloud, "ecs.DescribeInstances", {}, **changed)) == code


def test_a_request_without_a_signature_is_refused(site: Site) -> None:
    query = "Action=DescribeInstances&Version=2014-05-26&Format=JSON"

    assert code_of(site, Request("GET", "/", query, {})) == "MissingAccessKeyId"


def test_a_request_is_accepted_only_once(site: Site) -> None:
    sent = request(site.cloud, "ecs.DescribeInstances", {})

    assert code_of(site, sent) == ""
    assert code_of(site, sent) == "SignatureNonceUsed"


def test_a_request_of_the_newer_style_must_sign_its_headers_and_body(site: Site) -> None:
    sent = signed(site, "DescribeInstances", "2014-05-26", {"RegionId": "cn-hangzhou"}, {})

    assert code_of(site, replace(sent, headers={**sent.headers, "x-acs-extra": "a"})) == "IncompleteSignature"
    assert code_of(site, replace(sent, body=b"a=b")) == "InvalidContentSha256"
    assert code_of(site, replace(sent, query="RegionId=cn-hangzhou&Status=Running")) == "SignatureDoesNotMatch"
    assert code_of(site, replace(sent, headers={**sent.headers, "authorization": "Basic a"})) == "IncompleteSignature"
    assert code_of(site, sent) == ""


def test_parameters_must_be_where_the_sdk_puts_them(site: Site) -> None:
    in_query = signed(site, "DeleteLoadBalancer", "2022-04-30", {"LoadBalancerId": "nlb-1"}, {})
    in_form = signed(site, "DeleteLoadBalancer", "2022-04-30", {}, {"LoadBalancerId": "nlb-1"})

    assert code_of(site, in_query) == "MisplacedParameter"
    assert code_of(site, in_form) == "ResourceNotFound.loadBalancer"


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"ListenerPort": 80, "Bandwidth": -1}, "MissingLoadBalancerId"),
        ({"LoadBalancerId": "lb-1", "ListenerPort": "http", "Bandwidth": -1}, "InvalidListenerPort"),
        ({"LoadBalancerId": "lb-1", "ListenerPort": 80, "Bandwidth": -1, "Prot": 1}, "UnknownParameter"),
        ({"LoadBalancerId": "lb-1", "ListenerPort": 80, "Bandwidth": -1, "Tag": [{"K": "a"}]}, "UnknownParameter"),
        ({"LoadBalancerId": "lb-1", "ListenerPort": 80, "Bandwidth": -1, "ProxyProtocolV2Enabled": "on"}, None),
    ],
)
def test_a_missing_unknown_or_wrongly_typed_parameter_is_refused(
    site: Site, parameters: dict[str, object], code: str | None
) -> None:
    with pytest.raises(Refused) as refused:
        call(site.cloud, "slb.CreateLoadBalancerTCPListener", **parameters)

    assert refused.value.status == 400
    assert refused.value.code == (code or "InvalidProxyProtocolV2Enabled")


def test_a_parameter_that_is_not_simulated_is_refused(site: Site) -> None:
    with pytest.raises(Refused, match="does not simulate KeyPairName"):
        call(site.cloud, "ecs.DescribeInstances", KeyPairName="a")


def test_a_key_of_a_role_needs_its_session_token_until_it_expires(site: Site) -> None:
    with site.cloud.changing() as account:
        key, body = lend_key(account, "role", ["ecs:Describe*"], 900)

    def sent(**more: str) -> str:
        return code_of(site, request(site.cloud, "ecs.DescribeInstances", {}, key, body["secret"], **more))

    assert sent() == "MissingSecurityToken"
    assert sent(SecurityToken="x") == "InvalidSecurityToken.MismatchWithAccessKey"
    assert sent(SecurityToken=body["token"]) == ""
    site.clock.now += 900
    assert sent(SecurityToken=body["token"]) == "InvalidSecurityToken.Expired"


def test_a_key_calls_only_what_its_policies_allow(site: Site) -> None:
    with site.cloud.changing() as account:
        add_key(account, "reader", "secret", "reader", ["ecs:Describe*"])

    assert code_of(site, request(site.cloud, "ecs.DescribeInstances", {}, "reader", "secret")) == ""
    assert code_of(site, request(site.cloud, "vpc.DescribeVpcs", {}, "reader", "secret")) == "Forbidden.RAM"
    assert code_of(site, request(site.cloud, "sts.GetCallerIdentity", {}, "reader", "secret")) == ""


def test_a_call_over_its_rate_is_throttled(site: Site) -> None:
    site.cloud.limits.set("ecs.Describe*", 1)

    assert code_of(site, request(site.cloud, "ecs.DescribeInstances", {})) == ""
    assert code_of(site, request(site.cloud, "ecs.DescribeInstances", {})) == "Throttling.User"
    assert code_of(site, request(site.cloud, "ecs.DescribeNetworkInterfaces", {})) == ""


def test_after_a_lost_answer_the_same_token_finds_what_was_made(site: Site) -> None:
    site.cloud.faults.add(Fault("slb.CreateLoadBalancer", loses_answer=True))
    wanted = {"LoadBalancerSpec": "slb.s1.small", "ClientToken": "one"}

    with pytest.raises(Lost):
        call(site.cloud, "slb.CreateLoadBalancer", **wanted)
    again = call(site.cloud, "slb.CreateLoadBalancer", **wanted)

    found = call(site.cloud, "slb.DescribeLoadBalancers")["LoadBalancers"]["LoadBalancer"]
    assert [each["LoadBalancerId"] for each in found] == [again["LoadBalancerId"]]
    with pytest.raises(Refused) as refused:
        call(site.cloud, "slb.CreateLoadBalancer", **{**wanted, "LoadBalancerSpec": "slb.s2.small"})
    assert refused.value.code == "IdempotentParameterMismatch"
    site.clock.now += 25 * 3600
    assert call(site.cloud, "slb.CreateLoadBalancer", **wanted)["LoadBalancerId"] != again["LoadBalancerId"]


def test_a_dry_run_changes_nothing(site: Site) -> None:
    before = site.cloud.world.store.snapshot()
    entry = {"RouteTableId": site.table, "DstCidrBlock": "10.0.1.0/24", "NextHop": site.machines[0]}

    with pytest.raises(Refused) as refused:
        call(site.cloud, "vpc.CreateRouteEntries", RouteEntries=[{**entry, "NextHopType": "Instance"}], DryRun=True)

    assert refused.value.code == "DryRunOperation"
    assert site.cloud.world.store.snapshot() == before
