"""What is said of a change that costs a Service's address, and when a preview fails by it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pytest

from cloud_controller.cloud import Unavailable
from cloud_controller.clouds.aws.annotations import AWS_LBC_CLASS, CATALOGUE
from cloud_controller.clouds.mycloud.annotations import CATALOGUE as MYCLOUD
from cloud_controller.clouds.mycloud.annotations import PREFIX as DLB
from cloud_controller.clouds.openstack.octavia.annotations import CATALOGUE as OCTAVIA
from cloud_controller.clouds.openstack.octavia.refusals import INTERNAL
from cloud_controller.controllers.service.address_changes import ANNOTATION
from cloud_controller.plan import Action, ActionKind, FieldChange
from components.address_change import ProtectedAddress, changed_fields, check_update, texts
from components.placeholder import PlaceholderSecrets

PREFIX = "service.beta.kubernetes.io/aws-load-balancer-"
THE_OTHERS, OURS = AWS_LBC_CLASS, "cloud-controller/nlb"
NLB = {f"{PREFIX}type": "nlb"}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        pytest.param(NLB, {}, f"{PREFIX}type: 'nlb' -> 'classic'", id="another kind"),
        pytest.param(NLB, {**NLB, f"{PREFIX}internal": "true"}, f"{PREFIX}internal: False -> True", id="the scheme"),
    ],
)
def test_an_annotation_whose_change_replaces_the_load_balancer_is_named_with_both_values(
    before: dict[str, str], after: dict[str, str], said: str
) -> None:
    assert changed_fields(CATALOGUE, before, after) == [said]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        pytest.param("subnet-a,subnet-b", "subnet-a,subnet-c", True, id="a subnet less"),
        pytest.param("subnet-a", "subnet-a,subnet-c", False, id="a subnet more"),
        pytest.param("subnet-b,subnet-a", "subnet-a,subnet-b", False, id="another order"),
    ],
)
def test_a_change_in_place_that_takes_an_address_away_is_named(before: str, after: str, said: bool) -> None:
    was, will_be = ({**NLB, f"{PREFIX}subnets": text} for text in (before, after))

    assert bool(changed_fields(CATALOGUE, was, will_be)) is said


def test_a_floating_ip_that_goes_is_named_and_one_that_stays_is_not() -> None:
    assert changed_fields(OCTAVIA, {}, {INTERNAL: "true"}) == [f"{INTERNAL}: none -> True"]
    assert not changed_fields(OCTAVIA, {INTERNAL: "true"}, {INTERNAL: "true", f"{PREFIX}subnets": "subnet-a"})


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {"ip-address-type": "dualstack"}, False),
        ({"ip-address-type": "ipv4"}, {"ip-address-type": "dualstack"}, False),
        ({"ip-address-type": "dualstack"}, {"ip-address-type": "ipv4"}, True),
        ({}, {"enable-prefix-for-ipv6-source-nat": "on"}, False),
    ],
)
def test_a_family_of_addresses_that_comes_costs_none(before: dict[str, str], after: dict[str, str], said: bool) -> None:
    was, will_be = ({**NLB, **{f"{PREFIX}{name}": text for name, text in each.items()}} for each in (before, after))

    assert bool(changed_fields(CATALOGUE, was, will_be)) is said


@pytest.mark.parametrize(
    "after",
    [
        pytest.param({**NLB, f"{PREFIX}cross-zone-load-balancing-enabled": "true"}, id="a change in place"),
        pytest.param({**NLB, f"{PREFIX}internal": "false"}, id="the default, said"),
        pytest.param({**NLB, "example.com/team": "edge"}, id="others' annotation"),
        pytest.param({f"{PREFIX}type": "nbl"}, id="a value that is refused anyway"),
    ],
)
def test_a_change_that_keeps_the_address_is_not_named(after: dict[str, str]) -> None:
    assert not changed_fields(CATALOGUE, NLB, after)


@pytest.mark.parametrize(
    ("of_class", "after", "said"),
    [
        pytest.param(THE_OTHERS, {"internal": "true"}, False, id="internal, which that class is anyway"),
        pytest.param(THE_OTHERS, {"scheme": "internal"}, False, id="the same in AWS's words"),
        pytest.param(THE_OTHERS, {"internal": "false"}, True, id="public, which that class is not"),
        pytest.param(THE_OTHERS, {"scheme": "internet-facing"}, True, id="public in AWS's words"),
        pytest.param(OURS, {"internal": "true"}, True, id="internal, which our class is not"),
        pytest.param(OURS, {"scheme": "internet-facing"}, False, id="public, which our class is anyway"),
        pytest.param(OURS, {"type": "nlb"}, False, id="the kind that the class says"),
        pytest.param(None, {"type": "classic"}, False, id="the kind that a Service without a class gets"),
    ],
)
def test_the_default_of_an_annotation_depends_on_the_services_class(
    of_class: str | None, after: dict[str, str], said: bool
) -> None:
    annotations = {f"{PREFIX}{name}": text for name, text in after.items()}

    assert bool(changed_fields(CATALOGUE, {}, annotations, of_class)) is said


# ------------------------------------------------------------------------------------------------ before an update

DIGEST, OLD = "0123456789ab", "ba9876543210"
SCHEME = f"{DLB}scheme"
CHANGE = Action(
    ActionKind.REPLACE,
    "service/default/web",
    "leave load balancer lb-1; the address 192.0.2.1 changes",
    (FieldChange("scheme", "internet-facing", "internal"),),
    held=DIGEST,
    acknowledgement=f'{ANNOTATION}: "{DIGEST}"',
)


@dataclass
class Cluster:
    """What the program sees of the cluster."""

    found: Action | Exception | None = CHANGE
    asked: list[str] = field(default_factory=list)

    async def change(self, key: str, _before: object, _after: object) -> Action | None:
        self.asked.append(key)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def update(view: Any, annotations: dict[str, str], *, protect: bool = True, simulated: bool = False) -> None:
    """Check an update of Service default/web from no annotations to these."""
    asyncio.run(check_update(hook_args(annotations, simulated=simulated), MYCLOUD, view, protect=protect))


def hook_args(
    annotations: dict[str, Any], before: dict[str, Any] | None = None, *, simulated: bool = False
) -> pulumi.ResourceHookArgs:
    """Of the update of Service default/web to these annotations."""
    return pulumi.ResourceHookArgs(
        urn="urn:of:web",
        id="default/web",
        name="web",
        type="kubernetes:core/v1:Service",
        new_inputs={"metadata": {"annotations": annotations}, "spec": {"type": "LoadBalancer"}},
        old_inputs={"metadata": {"annotations": before or {}}, "spec": {"type": "LoadBalancer"}},
        old_outputs={"__simulated": True} if simulated else {},
        new_outputs=None,
    )


def test_a_protected_services_change_of_address_fails_with_what_changes_and_what_to_write() -> None:
    with pytest.raises(ProtectedAddress) as caught:
        update(Cluster(), {SCHEME: "internal"})

    assert str(caught.value).splitlines() == [
        f"Service default/web is protected, and this change would cost its address ({CHANGE.summary}):",
        "  scheme: internet-facing -> internal",
        "Undo it, or let it happen by the stack's config:",
        "  cloud-controller:replaceAddress:",
        f'    - default/web: "{DIGEST}"',
    ]


@pytest.mark.parametrize(
    ("name", "fails"), [(SCHEME, True), (f"{DLB}listener-idle-timeout", False), ("example.com/team", False)]
)
def test_a_secret_annotation_fails_it_too_without_its_value(name: str, fails: bool) -> None:
    unseeing: Any = Cluster(None)

    async def check() -> None:
        annotations = {name: pulumi.Output.secret("hush")}
        await check_update(hook_args(annotations), MYCLOUD, unseeing, protect=True)

    if not fails:
        asyncio.run(check())
        return
    with pytest.raises(ProtectedAddress) as caught:
        asyncio.run(check())

    assert f"  {SCHEME}: another secret value" in str(caught.value).splitlines()
    assert "hush" not in str(caught.value)


def test_a_secret_annotation_that_is_taken_off_fails_it_too() -> None:
    unseeing: Any = Cluster(None)

    async def check() -> None:
        args = hook_args({})
        args.old_inputs = hook_args({SCHEME: pulumi.Output.secret("internal")}).new_inputs
        await check_update(args, MYCLOUD, unseeing, protect=True)

    with pytest.raises(ProtectedAddress, match="another secret value"):
        asyncio.run(check())


def test_an_acknowledged_change_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    update(Cluster(), {SCHEME: "internal", ANNOTATION: DIGEST})

    assert "the address 192.0.2.1 changes: scheme: internet-facing -> internal" in capsys.readouterr().err


def test_the_acknowledgement_of_another_change_does_not_count() -> None:
    with pytest.raises(ProtectedAddress, match=f"{OLD} is for another change(.|\n)*{DIGEST}"):
        update(Cluster(), {SCHEME: "internal", ANNOTATION: OLD})


def test_a_service_without_protection_only_warns(capsys: pytest.CaptureFixture[str]) -> None:
    update(Cluster(), {SCHEME: "internal"}, protect=False)

    assert "scheme: internet-facing -> internal" in capsys.readouterr().err


def test_what_the_plan_knows_to_keep_the_address_passes(capsys: pytest.CaptureFixture[str]) -> None:
    update(Cluster(found=None), {SCHEME: "internal"})

    assert capsys.readouterr().err == ""


def test_the_cluster_is_asked_only_if_an_annotation_of_the_cloud_changes() -> None:
    cluster = Cluster()

    update(cluster, {"example.com/team": "edge"})
    assert cluster.asked == []
    update(cluster, {ANNOTATION: DIGEST})
    assert cluster.asked == ["default/web"]


@pytest.mark.parametrize("error", [PlaceholderSecrets("no secrets here"), Unavailable("no answer")])
def test_without_a_cluster_to_look_at_the_annotations_decide(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ProtectedAddress, match=rf"{SCHEME}: 'internet-facing' -> 'internal'(.|\n)*{error}"):
        update(Cluster(error), {SCHEME: "internal"})

    update(Cluster(error), {SCHEME: "internal", ANNOTATION: DIGEST})
    assert f"by its annotations alone: {error}" in capsys.readouterr().err
    update(Cluster(error), {f"{DLB}listener-maxqps": "7"})
    assert capsys.readouterr().err == ""


def test_an_annotation_that_is_not_known_yet_stays_as_it_is() -> None:
    assert texts({"a": object(), "b": object(), "c": "3"}, {"a": "1"}) == {"a": "1", "c": "3"}


def test_a_simulated_service_asks_no_cloud() -> None:
    cluster = Cluster()

    with pytest.raises(ProtectedAddress, match="this run has no cluster"):
        update(cluster, {SCHEME: "internal"}, simulated=True)

    assert cluster.asked == []


def test_where_the_program_does_not_say_which_cluster_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    update(None, {SCHEME: "internal"})

    assert "the address changes" in capsys.readouterr().err
