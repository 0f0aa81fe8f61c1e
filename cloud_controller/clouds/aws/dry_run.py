"""Dry runs of the controllers' changes in EC2: which of them IAM refuses to the caller. Nothing is changed.

API reference, `DryRun` of each operation: it "checks whether you have the required permissions for the action, without
actually making the request"; the error is DryRunOperation if so, otherwise UnauthorizedOperation. When EC2 checks
anything else is not documented, so any other error shows nothing.

Each request names the cluster's own objects, because the conditions of policies are about their tags. An endpoint that
ignored `DryRun` would still be left as it was: what one request adds, the next removes, others name what exists, and no
group is deleted then. (It would turn off the check of a machine that routes need off.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from cloud_controller.cloud import AccessDenied, CloudError, DryRun, InstanceState, Throttled, Unavailable
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.errors import error_code
from cloud_controller.clouds.aws.instances import AwsInstances
from cloud_controller.clouds.aws.ip_permissions import ip_permissions
from cloud_controller.clouds.aws.routes import AwsRoutes
from cloud_controller.clouds.aws.tags import tag_list
from cloud_controller.clouds.aws.vpc_state import VpcState

_Trial = tuple[str, dict[str, Any] | None]
"""An operation and its parameters; None: the cluster has no object to try it on."""

_NOBODYS_RANGE = "192.0.2.0/24"
"""TEST-NET-1 (RFC 5737), which nobody has."""
_IRREVERSIBLE = "DeleteSecurityGroup"
_UNTRIABLE = "AWS has no dry run for changes of load balancers, listeners and target groups"


def dry_run(
    api: Api, vpc_state: VpcState, instances: AwsInstances, routes: AwsRoutes, controllers: Collection[str]
) -> DryRun:
    """See `DryRuns.dry_run`; the caller has the CCM's credentials."""
    allowed, lacking, unknown = [], [], []
    ignored = False
    for operation, params in (
        *(_of_routes(instances, routes) if "route" in controllers else ()),
        *(_of_groups(vpc_state) if "service" in controllers else ()),
    ):
        if params is None or (ignored and operation == _IRREVERSIBLE):
            unknown.append(f"{operation} could not be tried on an object of the cluster")
            continue
        answer = _answer(api, operation, params)
        code = error_code(answer) if answer else ""
        ignored = ignored or answer is None
        if code == "DryRunOperation":
            allowed.append(operation)
        elif code == "UnauthorizedOperation":
            lacking.append(str(answer))
        elif isinstance(answer, AccessDenied | Throttled | Unavailable):
            raise answer
        else:
            unknown.append(f"a dry run of {operation} showed nothing: {answer or 'the endpoint ignored it'}")
    return DryRun(allowed, lacking, [*unknown, *([_UNTRIABLE] if "service" in controllers else [])])


def _answer(api: Api, operation: str, params: dict[str, Any]) -> CloudError | None:
    """None: the endpoint carried it out."""
    # The only call here: none can lack DryRun. What calls AWS for doctor has a fence, too, that only dry runs pass.
    try:
        api.call("ec2", operation, idempotent=True, DryRun=True, **params)
    except CloudError as error:
        return error
    return None


def _of_routes(instances: AwsInstances, routes: AwsRoutes) -> Iterator[_Trial]:
    route = {"RouteTableId": routes.known_table_id(), "DestinationCidrBlock": _NOBODYS_RANGE}
    running = [each.id for each in instances.list() if each.state is InstanceState.RUNNING]
    closed = {*instances.with_source_dest_check(running)}
    machine = min(running, key=lambda each: (each in closed, each), default=None)
    yield "CreateRoute", {**route, "InstanceId": machine} if machine else None
    yield "DeleteRoute", route
    yield "ModifyInstanceAttribute", {"InstanceId": machine, "SourceDestCheck": {"Value": False}} if machine else None


def _of_groups(vpc_state: VpcState) -> Iterator[_Trial]:
    facts, tag = vpc_state.facts(), vpc_state.cluster_tag
    own = next((each for each in facts.groups if each.of_service or each.shared), None)
    # The controller also changes rules of the nodes' groups.
    group = own or next(iter(facts.node_groups), None)
    named = {"VpcId": facts.vpc_id, "GroupName": group.name, "Description": "dry run"} if group else {}
    tagged = [{"ResourceType": "security-group", "Tags": tag_list({tag: "owned"})}]
    yield "CreateSecurityGroup", {**named, "TagSpecifications": tagged} if group else None
    rule = {"IpPermissions": ip_permissions([f"tcp 9-9 {_NOBODYS_RANGE}"])}
    yield "AuthorizeSecurityGroupIngress", {**rule, "GroupId": group.id} if group else None
    yield "RevokeSecurityGroupIngress", {**rule, "GroupId": group.id} if group else None
    yield "CreateTags", {"Resources": [own.id], "Tags": tag_list({tag: own.tags[tag]})} if own else None
    yield _IRREVERSIBLE, {"GroupId": own.id} if own else None
