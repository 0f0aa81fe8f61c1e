"""The listeners of network load balancers. AWS has one a port, whose protocol can be changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import Conflict, NotFound
from cloud_controller.clouds.aws.attributes import (
    DEFAULT_ALPN_POLICY,
    DEFAULT_SSL_POLICY,
    LISTENER,
    listener_defaults,
    texts,
)
from cloud_controller.clouds.aws.client import Api, error_code
from cloud_controller.clouds.aws.tags import from_tag_list, tag_list
from cloud_controller.load_balancers.model import Listener


class Listeners:
    """The calls, each idempotent; safe to share between threads. Listeners are named by ARN."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def read(
        self, load_balancer_arn: str, pools: Mapping[str, str], *, with_attributes: bool = False
    ) -> dict[str, Listener]:
        """Those of a load balancer; `pools` are the names of its target groups, by ARN.

        Their attributes are AWS's defaults unless they are asked for: a call for each TCP listener.
        """
        pages = self._api.pages("elbv2", "DescribeListeners", "Listeners", LoadBalancerArn=load_balancer_arn)
        found = {each["ListenerArn"]: self._listener(each, pools) for each in pages}
        return {arn: self._with_attributes(arn, each) if with_attributes else each for arn, each in found.items()}

    def create(self, load_balancer_arn: str, listener: Listener, group_arn: str, tags: Mapping[str, str]) -> str:
        """Make it, or change the one that has its port; its ARN."""
        params = {"Port": listener.port, "Tags": tag_list(tags), **_params(listener, group_arn)}
        try:
            # A second one of a port is refused, so the first answer being lost does no harm.
            made = self._api.call(
                "elbv2", "CreateListener", idempotent=True, LoadBalancerArn=load_balancer_arn, **params
            )
        except Conflict as error:
            if error_code(error) != "DuplicateListener":
                raise
            present = self.read(load_balancer_arn, {})
            for arn, before in present.items():
                if before.port == listener.port:
                    self.change(arn, listener, group_arn, before)
                    return arn
            raise
        arn = str(made["Listeners"][0]["ListenerArn"])
        self._put_certificates(arn, listener, ())
        self._put_attributes(arn, listener, None)
        return arn

    def change(self, arn: str, listener: Listener, group_arn: str, before: Listener) -> None:
        """Make it what it shall be; `before` is what it was."""
        rest, rest_before = (replace(each, attributes=_apart(each)) for each in (listener, before))
        # Where nothing at all differs, it is somebody's wish all the same that AWS has exactly this.
        if rest != rest_before or listener == before:
            self._api.call("elbv2", "ModifyListener", ListenerArn=arn, **_params(listener, group_arn))
            self._put_certificates(arn, listener, _further(before))
        self._put_attributes(arn, listener, before)

    def delete(self, arn: str) -> None:
        """Delete it; one that is gone already does not matter."""
        try:
            self._api.call("elbv2", "DeleteListener", ListenerArn=arn)
        except NotFound:
            return

    def _listener(self, listener: Mapping[str, Any], pools: Mapping[str, str]) -> Listener:
        protocol = str(listener["Protocol"])
        certificates: tuple[str, ...] = ()
        ssl_policy = alpn_policy = None
        if protocol == "TLS":
            certificates = self._certificates(listener)
            ssl_policy = listener.get("SslPolicy") or DEFAULT_SSL_POLICY
            alpn_policy = next(iter(listener.get("AlpnPolicy") or ()), DEFAULT_ALPN_POLICY)
        attributes = {
            "protocol": protocol,
            "certificates": certificates,
            "ssl_policy": ssl_policy,
            "alpn_policy": alpn_policy,
            **listener_defaults(protocol),
        }
        groups = [action.get("TargetGroupArn", "") for action in listener.get("DefaultActions") or ()]
        # A target group that somebody else put there is no pool of the model.
        pool = pools.get(groups[0], groups[0]) if groups else ""
        return Listener(transport(protocol), int(listener["Port"]), pool, attributes)

    def _certificates(self, listener: Mapping[str, Any]) -> tuple[str, ...]:
        """The default one, then the others, which AWS tells only if it is asked for them."""
        default = [each["CertificateArn"] for each in listener.get("Certificates") or ()]
        arn = listener["ListenerArn"]
        all_ = self._api.pages("elbv2", "DescribeListenerCertificates", "Certificates", ListenerArn=arn)
        others = {each["CertificateArn"] for each in all_ if not each.get("IsDefault")} - {*default}
        return (*default, *sorted(others, key=str.lower))

    def _with_attributes(self, arn: str, listener: Listener) -> Listener:
        if not listener_defaults(str(listener.attributes["protocol"])):
            return listener
        of_aws = from_tag_list(self._api.call("elbv2", "DescribeListenerAttributes", ListenerArn=arn)["Attributes"])
        attributes = {key: of_aws.get(key, rule.default) for key, rule in LISTENER.items()}
        return replace(listener, attributes={**listener.attributes, **attributes})

    def _put_attributes(self, arn: str, listener: Listener, before: Listener | None) -> None:
        """Write those that differ from what they were; a new one has AWS's defaults."""
        defaults = listener_defaults(str(listener.attributes["protocol"]))
        known = {**defaults, **(before.attributes if before else {})}
        wanted = {key: str(listener.attributes.get(key, default)) for key, default in defaults.items()}
        differing = {key: value for key, value in wanted.items() if known[key] != value}
        if differing:
            listed = tag_list(differing)
            self._api.call("elbv2", "ModifyListenerAttributes", ListenerArn=arn, Attributes=listed)

    def _put_certificates(self, arn: str, listener: Listener, before: Sequence[str]) -> None:
        if listener.attributes["protocol"] != "TLS":
            return  # They go with TLS.
        wanted = texts(listener.attributes.get("certificates"))
        changes = (
            ("AddListenerCertificates", [each for each in wanted[1:] if each not in before]),
            # AWS does not take away the one that has become the default, which is no further one then.
            ("RemoveListenerCertificates", [each for each in before if each not in wanted]),
        )
        for operation, certificates in changes:
            if certificates:
                listed = [{"CertificateArn": each} for each in certificates]
                self._api.call("elbv2", operation, idempotent=True, ListenerArn=arn, Certificates=listed)


def transport(protocol: str) -> str:
    """What a listener of this protocol is in the model: TLS is TCP."""
    return "TCP" if protocol == "TLS" else protocol


def has_own_attributes(listener: Listener) -> bool:
    """Whether any attribute of it is not AWS's default."""
    return any(listener.attributes.get(key, rule.default) != rule.default for key, rule in LISTENER.items())


def _apart(listener: Listener) -> dict[str, Any]:
    """What ModifyListener changes of it."""
    return {key: value for key, value in listener.attributes.items() if key not in LISTENER}


def _further(listener: Listener) -> tuple[str, ...]:
    return texts(listener.attributes.get("certificates"))[1:]


def _params(listener: Listener, group_arn: str) -> dict[str, Any]:
    attributes = listener.attributes
    params: dict[str, Any] = {
        "Protocol": attributes["protocol"],
        "DefaultActions": [{"Type": "forward", "TargetGroupArn": group_arn}],
    }
    certificates = texts(attributes.get("certificates"))
    if certificates:
        params["Certificates"] = [{"CertificateArn": certificates[0]}]
    if attributes.get("ssl_policy"):
        params["SslPolicy"] = attributes["ssl_policy"]
    if attributes.get("alpn_policy"):
        params["AlpnPolicy"] = [attributes["alpn_policy"]]
    return params
