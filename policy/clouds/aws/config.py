"""Whether a cloud config of AWS is valid, and which of AWS's APIs a CCM with it reaches by public addresses."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.clouds.aws.config import parse
from policy.objects import dig
from policy.rules import Stack

_VPC = "aws:ec2/vpc:Vpc"
_ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
_APIS = {"ec2": ("ec2",), "elasticloadbalancing": ("elb", "elbv2"), "sts": ("sts",)}
"""What every CCM calls: the last part of an endpoint's service name, with the names of `ServiceOverride`."""


def check(text: str) -> None:
    """Raises InvalidConfiguration."""
    parse(text)


def public_apis(text: str, stack: Stack) -> Iterator[str]:
    """The APIs for which neither the cloud config names an endpoint, nor the stack makes one that answers for them.

    None where the VPC is another program's, and so are its endpoints.
    Raises InvalidConfiguration, UnknownValueError.
    """
    if not stack.of(_VPC):
        return
    overridden = {each.service for each in parse(text).overrides}
    made = {
        str(dig(each.props, "serviceName")).rpartition(".")[2]
        for each in stack.of(_ENDPOINT)
        # Without private DNS, only what names the endpoint uses it.
        if dig(each.props, "vpcEndpointType") == "Interface" and dig(each.props, "privateDnsEnabled")
    }
    yield from (api for api, names in _APIS.items() if api not in made and not overridden.issuperset(names))
