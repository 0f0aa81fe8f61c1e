"""The listeners of classic load balancers and their policies (security policy, proxy protocol)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cloud_controller.cloud import Conflict
from cloud_controller.clouds.aws.classic_model import (
    PROXY_POLICY,
    listener_params,
    must_be_made_anew,
    ssl_policy_name,
)
from cloud_controller.clouds.aws.client import Api, error_code
from cloud_controller.load_balancers.model import Listener


class ClassicListeners:
    """Idempotent calls for listeners; load balancers are given by name."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def put(self, name: str, wanted: Listener, present: Sequence[Listener]) -> None:
        """Create the listener, or change it: in place if AWS can, otherwise by deleting and recreating it."""
        actual = next((each for each in present if each.key == wanted.key), None)
        if actual is not None and not must_be_made_anew(wanted, actual):
            self._change(name, wanted, actual)
            return
        if actual is not None:
            self.delete(name, actual, present)
        # AWS accepts the same listener twice.
        listed = [listener_params(wanted)]
        self._call("CreateLoadBalancerListeners", name, idempotent=True, Listeners=listed)
        self.put_policies(name, [wanted])
        if not wanted.attributes["proxy_protocol"] and _proxied(wanted, present):
            # The policy is the instance port's, and the new listener would get it from a listener that is to go.
            self._set_proxy_policy(name, wanted, on=False)

    def delete(self, name: str, listener: Listener, present: Iterable[Listener]) -> None:
        """Delete it, and the proxy policy of its instance port unless another listener uses that port."""
        others = {each.attributes["instance_port"] for each in present if each.key != listener.key}
        if listener.attributes["proxy_protocol"] and listener.attributes["instance_port"] not in others:
            # AWS keeps the policy of that port, and without a listener no read would show it.
            self._set_proxy_policy(name, listener, on=False)
        self._call("DeleteLoadBalancerListeners", name, LoadBalancerPorts=[listener.port])

    def put_policies(self, name: str, listeners: Sequence[Listener]) -> None:
        """Set the policies of new listeners."""
        suites = sorted({str(each.attributes["ssl_policy"]) for each in listeners if each.attributes["ssl_policy"]})
        for suite in suites:
            self._make_ssl_policy(name, suite)
        for listener in listeners:
            if listener.attributes["ssl_policy"]:
                self._set_ssl_policy(name, listener)
        proxied = [listener for listener in listeners if listener.attributes["proxy_protocol"]]
        if proxied:
            self._make_proxy_policy(name)
        for listener in proxied:
            self._set_proxy_policy(name, listener, on=True)

    def _change(self, name: str, wanted: Listener, actual: Listener) -> None:
        now, before = wanted.attributes, actual.attributes
        if now["certificate"] != before["certificate"]:
            certificate = {"LoadBalancerPort": wanted.port, "SSLCertificateId": now["certificate"]}
            self._call("SetLoadBalancerListenerSSLCertificate", name, **certificate)
        if now["ssl_policy"] != before["ssl_policy"]:
            self._make_ssl_policy(name, str(now["ssl_policy"]))
            self._set_ssl_policy(name, wanted)
        if now["proxy_protocol"] != before["proxy_protocol"]:
            if now["proxy_protocol"]:
                self._make_proxy_policy(name)
            self._set_proxy_policy(name, wanted, on=bool(now["proxy_protocol"]))

    def _make_ssl_policy(self, name: str, suite: str) -> None:
        value = {"AttributeName": "Reference-Security-Policy", "AttributeValue": suite}
        self._make_policy(name, ssl_policy_name(suite), "SSLNegotiationPolicyType", value)

    def _make_proxy_policy(self, name: str) -> None:
        value = {"AttributeName": "ProxyProtocol", "AttributeValue": "true"}
        self._make_policy(name, PROXY_POLICY, "ProxyProtocolPolicyType", value)

    def _make_policy(self, name: str, policy: str, kind: str, value: Mapping[str, str]) -> None:
        params = {"PolicyName": policy, "PolicyTypeName": kind, "PolicyAttributes": [value]}
        try:
            self._call("CreateLoadBalancerPolicy", name, idempotent=True, **params)
        except Conflict as error:
            # The policy's name contains its whole content.
            if error_code(error) != "DuplicatePolicyName":
                raise

    def _set_ssl_policy(self, name: str, listener: Listener) -> None:
        policies = [ssl_policy_name(str(listener.attributes["ssl_policy"]))]
        self._call("SetLoadBalancerPoliciesOfListener", name, LoadBalancerPort=listener.port, PolicyNames=policies)

    def _set_proxy_policy(self, name: str, listener: Listener, *, on: bool) -> None:
        port, policies = listener.attributes["instance_port"], [PROXY_POLICY] if on else []
        self._call("SetLoadBalancerPoliciesForBackendServer", name, InstancePort=port, PolicyNames=policies)

    def _call(self, operation: str, name: str, **params: Any) -> None:
        self._api.call("elb", operation, LoadBalancerName=name, **params)


def _proxied(listener: Listener, present: Iterable[Listener]) -> bool:
    """Whether another listener has given the listener's instance port the proxy policy."""
    others = (each.attributes for each in present if each.key != listener.key)
    port = listener.attributes["instance_port"]
    return any(each["proxy_protocol"] and each["instance_port"] == port for each in others)
