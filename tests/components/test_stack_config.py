"""The stack's config: what is read, and what is said about each kind of mistake."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pulumi
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from components.stack_config import (
    MODEL,
    NAMESPACE,
    SECRET_KEYS,
    ConfigError,
    Controller,
    Executor,
    Role,
    StackConfig,
    load,
    model_with,
    parse,
)
from components.stack_file_lines import with_lines
from components.stack_model import CloudSection
from components.stack_schema import schema

ROOT = Path(__file__).parents[2]
DIGEST = "0123456789ab"
TOKEN = "a-token-that-nobody-may-see"


def pool(**more: Any) -> dict[str, Any]:
    return {"name": "cp", "role": "control-plane", "count": 1, "type": "m1.small", "zones": ["zone-a"], **more}


def values(**more: Any) -> dict[str, str]:
    """Config as Pulumi hands it over: everything is text, objects as JSON."""
    config = {
        "cloud": "mycloud",
        "clusterName": "c",
        "nodePools": [pool()],
        "mycloud": {"endpoint": "http://127.16.0.1:7070"},
        "mycloudToken": TOKEN,
        **more,
    }
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in config.items() if v is not None}


SECRETS = {"kubeconfig", "mycloudToken", "mycloudControllerToken", "openstackSecret"}


def refused(**more: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(values(**more), SECRETS)
    return str(caught.value)


def test_a_stack_file_is_read_into_one_typed_object() -> None:
    config = parse(values(executors={"node": "pulumi", "service": "daemon"}, workloads="true"), SECRETS)

    assert config.node_pools[0].role is Role.CONTROL_PLANE
    assert config.run_by(Executor.PULUMI) == [Controller.NODE]
    assert config.run_by(Executor.DAEMON) == [
        Controller.ROUTE,
        Controller.SERVICE,
        Controller.NODE_LIFECYCLE,
        Controller.VOLUME,
    ]
    assert config.workloads
    assert not config.protect


def test_the_token_is_not_shown() -> None:
    assert TOKEN not in repr(parse(values(), SECRETS))


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"cloud": "myclod"}, "cloud is \"myclod\": did you mean 'mycloud'? allowed: alicloud, aws, mycloud, "),
        ({"clusterName": "My_Cluster"}, 'clusterName is "My_Cluster": allowed: a DNS label'),
        ({"nodePool": []}, "nodePool is not a known key; did you mean 'nodePools'? allowed: cloud,"),
        ({"nodePools": "three"}, "nodePools is text: allowed: a list"),
        ({"nodePools": ["cp"]}, "nodePools[0] is text: allowed: a map of name, role, count"),
        ({"nodePools": []}, "nodePools is []: allowed: not empty"),
        ({"nodePools": None}, "nodePools is missing: a new cluster needs machines"),
        ({"nodePools": [pool(role="controlplane")]}, "role is \"controlplane\": did you mean 'control-plane'?"),
        ({"nodePools": [pool(count=-1)]}, "nodePools[0].count is -1: allowed: a whole number from 0 to 1000"),
        ({"nodePools": [pool(count="1")]}, 'nodePools[0].count is "1": allowed: a whole number from 0 to 1000'),
        ({"nodePools": [pool(count=True)]}, "nodePools[0].count is true: allowed: a whole number from 0 to 1000"),
        ({"nodePools": [pool(zones=[""])]}, 'nodePools[0].zones[0] is "": allowed: not empty'),
        (
            {"nodePools": [pool(labels={"a b": "c"})]},
            'nodePools[0].labels is {"a b": "c"}: "a b" is not a valid label name',
        ),
        ({"nodePools": [pool(labels={"a": "b c"})]}, 'nodePools[0].labels is {"a": "b c"}: "a" has an invalid value'),
        ({"nodePools": [pool(labels={"a": 1})]}, "nodePools[0].labels.a is 1: allowed: text"),
        ({"nodePools": [pool(zones=[])]}, "nodePools[0].zones is []: allowed: not empty"),
        ({"nodePools": [pool(zone="a")]}, "nodePools[0].zone is not a known key; did you mean 'zones'?"),
        ({"nodePools": [pool(ingress="yes")]}, 'nodePools[0].ingress is "yes": allowed: true, false'),
        ({"nodePools": [pool(), pool()]}, 'nodePools[1].name is "cp": another pool has this name'),
        ({"nodePools": [pool(role="worker")]}, "allowed: at least one pool of role control-plane"),
        ({"nodePools": [pool(name="n" * 62)]}, "would have a name of 66 characters"),
        ({"executors": {"node": "vendor"}}, 'executors.node is "vendor": mycloud runs no controllers itself'),
        ({"executors": {"service": "pulumi"}}, 'executors.service is "pulumi": pulumi can run only node and route'),
        ({"executors": {"route": "pulum"}}, "executors.route is \"pulum\": did you mean 'pulumi'? allowed: daemon"),
        ({"executors": {"routes": "pulumi"}}, "executors.routes is not a known key; did you mean 'route'?"),
        ({"workloads": "maybe"}, 'workloads is "maybe": allowed: true, false'),
        ({"doctorPushGateway": "http://gw:9091"}, 'doctorPushGateway is "http://gw:9091": only with doctorSchedule'),
        (
            {"doctorSchedule": "0 * * * *", "doctorPushGateway": "http://gw:port"},
            'doctorPushGateway is "http://gw:port": allowed: a URL without credentials, such as http://',
        ),
        (
            {"doctorSchedule": "0 * * * *", "doctorPushGateway": "http://me:hush@gw:9091"},
            'doctorPushGateway is "http://[secret]@gw:9091": allowed: a URL without credentials, such as http://',
        ),
        ({"retain": "yes"}, 'retain is "yes": allowed: true, false'),
        ({"sourceRange": []}, "sourceRange is not a known key; did you mean 'sourceRanges'?"),
        ({"sourceRanges": ["10.0.0.0/8", "10.0.0.1/8"]}, 'sourceRanges[1] is "10.0.0.1/8": allowed: an IPv4 range'),
        ({"sourceRanges": "10.0.0.0/8"}, "sourceRanges is text: allowed: a list"),
        ({"sourceRanges": ["10.0.0.0/255.0.0.0"]}, 'sourceRanges[0] is "10.0.0.0/255.0.0.0": allowed: an IPv4 range'),
        ({"source_ranges": []}, "source_ranges is not a known key; did you mean 'sourceRanges'?"),
        ({"cluster_name": "c"}, "cluster_name is not a known key; did you mean 'clusterName'?"),
        ({"executors": {"[key]": "pulumi"}}, 'executors["[key]"] is not a known key'),
        ({"mycloud": "http://a"}, "mycloud is text: allowed: a map of endpoint"),
        ({"mycloud": {"endpoint": "127.0.0.1"}}, 'mycloud.endpoint is "127.0.0.1": allowed: http://HOST:PORT'),
        (
            {"mycloud": {"endpoint": "http://a", "tokenExpires": "31.1.2027"}},
            'mycloud.tokenExpires is "31.1.2027": allowed: a day, as YYYY-MM-DD',
        ),
        ({"mycloud": None}, "mycloud is missing: cloud mycloud needs {endpoint"),
        ({"mycloudToken": None}, "mycloudToken is missing: cloud mycloud needs a token"),
        ({"sharedLoadBalancers": "all"}, 'sharedLoadBalancers is "all": allowed: off, tagged, any'),
        ({"addressChanges": "ask"}, 'addressChanges is "ask": allowed: allow, acknowledge'),
        ({"replaceAddress": {"default/web": DIGEST}}, "replaceAddress is a map: allowed: a list"),
        (
            {"replaceAddress": [{"web": DIGEST}]},
            'replaceAddress[0] is {"web": "0123456789ab"}: allowed: NAMESPACE/NAME: ',
        ),
        ({"replaceAddress": [{"default/web": "0123"}]}, 'replaceAddress[0] is {"default/web": "0123"}: allowed: '),
        ({"replaceAddress": [{"default/web": 1}]}, 'replaceAddress[0]["default/web"] is 1: allowed: text'),
        ({"readinessGates": "on"}, 'readinessGates is "on": allowed: auto, off, by-hand, inject'),
        ({"annotationsMayName": ["subnets=a"]}, 'annotationsMayName[0] is "subnets=a": allowed: '),
        ({"annotationsMayName": "subnet=a"}, "annotationsMayName is text: allowed: a list"),
    ],
)
def test_a_mistake_is_one_line_with_key_value_and_what_is_allowed(more: dict[str, Any], line: str) -> None:
    said = refused(**more)

    assert f"{NAMESPACE}:" in said
    assert line in said
    assert TOKEN not in said


def test_the_last_acknowledgement_of_a_service_counts() -> None:
    given = [{"default/web": "ba9876543210"}, {"default/echo": DIGEST}, {"default/web": DIGEST}]

    parsed = parse(values(replaceAddress=given), SECRETS)

    assert (parsed.acknowledged("default/web"), parsed.acknowledged("other/web")) == (DIGEST, None)


@pytest.mark.parametrize(
    ("more", "flags"),
    [
        ({}, []),
        ({"sharedLoadBalancers": "tagged"}, []),
        ({"sharedLoadBalancers": "any"}, ["--shared-load-balancers=any"]),
        ({"sharedLoadBalancers": "off"}, ["--shared-load-balancers=off"]),
        ({"sharedLoadBalancers": False}, ["--shared-load-balancers=off"]),
        ({"sharedListenersPerNamespace": 10}, []),
        ({"sharedListenersPerNamespace": 0}, ["--shared-listeners-per-namespace=0"]),
        ({"addressChanges": "acknowledge"}, ["--address-changes=acknowledge"]),
        (
            {"annotationsMayName": ["subnet=tag:shared", "log-bucket=logs"]},
            ["--annotations-may-name=subnet=tag:shared,log-bucket=logs"],
        ),
    ],
)
def test_what_annotations_may_do_becomes_flags_of_the_daemon(more: dict[str, Any], flags: list[str]) -> None:
    assert parse(values(**more), SECRETS).service_flags() == flags


def test_a_section_without_required_keys_need_not_be_given() -> None:
    class Defaults(CloudSection):
        size: int = 1

    given = {"cloud": "plain", "clusterName": "c", "nodePools": [pool()]}

    assert model_with({"plain": Defaults}).model_validate(given).section(Defaults).size == 1


def test_no_secret_is_shown_wherever_it_was_put() -> None:
    endpoint = refused(mycloud={"endpoint": f"http://me:{TOKEN}@host"})
    with pytest.raises(ConfigError) as caught:
        parse(values(mycloud=TOKEN), SECRETS | {"mycloud"})

    assert "http://[secret]@host" in endpoint
    assert "ss@" not in refused(mycloud={"endpoint": "http://me:pa@ss@host"})
    assert "pa/ss" not in refused(mycloud={"endpoint": "http://me:pa/ss@host"})
    assert "s w" not in refused(mycloud={"endpoint": 'http://me:pas"s word@host'})
    assert 'mycloud is "[secret]": allowed: a map' in str(caught.value)
    assert TOKEN not in endpoint + str(caught.value)
    assert TOKEN not in refused(mycloud=TOKEN)
    assert TOKEN not in refused(clusterName=f"_{TOKEN}", mycloudToken=TOKEN)


@pytest.mark.parametrize(
    ("cloud", "section", "line"),
    [
        ("aws", {"auditDays": 30}, "aws.auditDays is 30: allowed: a whole number from 90 to 3653"),
        ("aws", {"auditDays": "90"}, 'aws.auditDays is "90": allowed: a whole number from 90 to 3653'),
        ("aws", {"logDays": "7"}, 'aws.logDays is "7": allowed: 1, 3, 5, 7, 14'),
        ("alicloud", {"logDays": 4000}, "alicloud.logDays is 4000: allowed: a whole number from 1 to 3000"),
        ("alicloud", {"autoscaling": {"a": 0}}, "alicloud.autoscaling.a is 0: allowed: a whole number from 1 to 1000"),
        (
            "openstack",
            {"loadBalancers": {"monitorMaxRetries": 11}},
            "Retries is 11: allowed: a whole number from 1 to 10",
        ),
    ],
)
def test_a_number_out_of_its_range_is_told_the_range(cloud: str, section: dict[str, Any], line: str) -> None:
    assert line in refused(cloud=cloud, **{cloud: section})


def test_every_mistake_is_reported_at_once() -> None:
    said = refused(cloud="x", nodePools=[pool(count=-1, ingress=1)])

    assert len(said.splitlines()) == 3


def test_the_running_programs_config_is_read_by_namespace(run_program: Any) -> None:
    found: list[StackConfig] = []

    run_program(lambda: found.append(load()), values())

    assert found[0].cluster_name == "c"


def said_of(run_program: Any, **more: Any) -> str:
    """The error of a stack that `pulumi up` runs."""
    with pytest.raises(ConfigError) as caught:
        run_program(load, values(**more))
    return str(caught.value)


@pytest.mark.parametrize(
    ("more", "lacks"),
    [
        ({"mycloud": None}, "mycloud"),
        (
            {"cloud": "openstack", "cluster": "existing", "openstack": {"simulated": True}, "nodePools": None},
            "existing",
        ),
    ],
)
def test_a_stack_without_what_its_site_adds_is_told_how_to_start_the_site(
    run_program: Any, more: dict[str, Any], lacks: str
) -> None:
    *_, said = said_of(run_program, **more).splitlines()

    assert said == f"stack local needs its site, which adds {lacks}: run it with `make up STACK=local`"


@pytest.mark.parametrize(
    "more",
    [
        {"clusterName": "C", "mycloud": {"endpoint": "http://127.16.0.1:7070"}},
        {"cloud": "openstack", "cluster": "existing", "openstack": {"authUrl": "https://k.example"}, "nodePools": None},
        {"cloud": "nimbus"},
    ],
)
def test_other_mistakes_do_not_lead_to_a_site(run_program: Any, more: dict[str, Any]) -> None:
    assert "make up" not in said_of(run_program, **more)


def stack_file(name: str) -> StackConfig:
    """The project's stack file, with what the site adds."""
    file = yaml.safe_load((ROOT / f"stacks/Pulumi.{name}.yaml").read_text())
    return parse(values(**{key.removeprefix(f"{NAMESPACE}:"): value for key, value in file["config"].items()}), SECRETS)


def test_the_local_stack_file_is_valid_once_the_site_has_added_its_keys() -> None:
    config = stack_file("local")

    assert [p.count for p in config.node_pools] == [1, 3]
    assert config.run_by(Executor.PULUMI) == [Controller.NODE, Controller.ROUTE]


@pytest.mark.parametrize("name", ["mycloud-prod", "mycloud-ha"])
def test_a_production_stack_outlives_a_zone_and_is_run_by_the_daemon_alone(name: str) -> None:
    config = stack_file(name)

    (control_plane,) = [p for p in config.node_pools if p.role is Role.CONTROL_PLANE]
    assert control_plane.count == len(set(control_plane.zones)) == 3
    assert config.run_by(Executor.DAEMON) == list(Controller)
    assert config.source_ranges


def test_production_is_protected_and_its_copy_for_one_machine_is_not() -> None:
    prod, ha = stack_file("mycloud-prod"), stack_file("mycloud-ha")

    assert (prod.protect, prod.retain) == (True, True)
    assert (ha.protect, ha.retain) == (False, False)


def declared() -> dict[str, Any]:
    """What Pulumi.yaml declares."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    return config


def test_the_project_declares_the_keys_that_every_cloud_has_and_their_defaults() -> None:
    """A declared key that is secret or has no default would have to be set in every stack, whatever its cloud."""
    of_one_kind = {"alicloud", "aws", "mycloud", "openstack", "existing", *SECRET_KEYS}

    assert set(declared()) == {str(field.alias) for field in MODEL.model_fields.values()} - of_one_kind
    assert not any("secret" in declaration for declaration in declared().values())
    for key in ("cluster", "workloads", "protect", "retain"):
        assert declared()[key]["default"] == MODEL.model_fields[key].default


def test_the_editors_schema_and_the_documentation_are_up_to_date() -> None:
    page = (ROOT / "docs/stack-config.md").read_text()

    assert json.loads((ROOT / "stacks/schema.json").read_text()) == schema()
    for field in MODEL.model_fields.values():
        assert f"| `{field.alias}` |" in page


@pytest.mark.parametrize("key", ["mycloudToken", "mycloudControllerToken"])
def test_a_secret_in_plain_text_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(values(**{key: TOKEN}), SECRETS - {key})

    remedy = f"encrypt it with `pulumi config set --secret {key}`"
    assert str(caught.value) == f"{NAMESPACE}:{key} is in plain text; {remedy}"


def test_a_running_program_knows_from_pulumi_which_keys_are_encrypted() -> None:
    """The CLI's launcher of programs hands over the names of the secret keys beside the values."""
    config = {f"{NAMESPACE}:{key}": value for key, value in values().items()}

    def program(*encrypted: str) -> StackConfig:
        pulumi.runtime.set_all_config(config, [f"{NAMESPACE}:{key}" for key in encrypted])
        return load()

    assert contextvars.copy_context().run(program, "mycloudToken").secret("mycloudToken") == TOKEN
    with pytest.raises(ConfigError, match="mycloudToken is in plain text"):
        contextvars.copy_context().run(program)


def test_every_text_that_the_config_hides_must_be_encrypted() -> None:
    hidden = {f.alias for f in MODEL.model_fields.values() if "SecretStr" in str(f.annotation)}

    assert set(SECRET_KEYS) == hidden == SECRETS


def test_a_secret_in_plain_text_is_reported_beside_other_mistakes() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(values(clusterName="C"))

    assert len(str(caught.value).splitlines()) == 2


def test_an_empty_secret_counts_as_missing() -> None:
    assert "mycloudToken is missing" in refused(mycloudToken="")


def as_pulumi_writes(config: dict[str, Any]) -> dict[str, Any]:
    """The config of a stack file after `pulumi stack init`, with a map by `pulumi config set KEY '{...}'`."""

    def written(key: str, value: Any) -> Any:
        is_section = isinstance(value, dict) and "secure" not in value and key.partition(":")[2] not in declared()
        return json.dumps(value) if isinstance(value, bool | int) or is_section else value

    return {key: written(key, value) for key, value in config.items()}


@pytest.mark.parametrize("path", sorted(ROOT.glob("stacks/Pulumi.*.yaml")), ids=lambda path: path.name)
def test_a_stack_file_that_pulumis_cli_wrote_again_is_valid(path: Path) -> None:
    config = yaml.safe_load(path.read_text())["config"]
    config |= {f"{NAMESPACE}:sharedListenersPerNamespace": 3, f"{NAMESPACE}:protect": False}

    written = as_pulumi_writes(config)

    assert written != config
    jsonschema.validate({"config": written, "encryptionsalt": "v1:c2FsdA==:v1:eA=="}, schema())


def test_a_mistake_in_a_stack_file_that_pulumis_cli_wrote_again_has_its_line(tmp_path: Path) -> None:
    written = 'config:\n  cloud-controller:workloads: "true"\n  cloud-controller:sharedListenersPerNamespace: "1001"\n'
    (file := tmp_path / "Pulumi.dev.yaml").write_text(written)
    given_values = {"workloads": "true", "sharedListenersPerNamespace": "1001"}

    assert with_lines(refused(**given_values), given_values, file).endswith(f"from 0 to 1000 ({file}:3)")


@pytest.mark.parametrize(
    ("key", "text"),
    [("workloads", "yes"), ("sharedListenersPerNamespace", "many"), ("mycloud", "http://a"), ("nodePools", "[]")],
)
def test_an_editor_marks_text_that_pulumis_cli_does_not_write(key: str, text: str) -> None:
    right = {"cloud": "mycloud", "clusterName": "c", "nodePools": [pool()], "mycloud": {"endpoint": "http://h:1"}}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(in_a_file({**right, key: text}), schema())


def in_a_file(given_values: dict[str, Any]) -> dict[str, Any]:
    """As a stack file has it: the token encrypted."""
    secret = {"mycloudToken": {"secure": "v1:…"}}
    return {"config": {f"{NAMESPACE}:{key}": value for key, value in {**given_values, **secret}.items()}}


@pytest.mark.parametrize(
    "more",
    [
        {"cloud": "myclod"},
        {"clusterName": "My_Cluster"},
        {"clustrName": "c"},
        {"nodePools": []},
        {"nodePools": [pool(count="1")]},
        {"nodePools": [pool(count=1001)]},
        {"nodePools": [pool(zone="a")]},
        {"nodePools": [pool(name="Cp")]},
        {"nodePools": [pool(labels={"a": 1})]},
        {"executors": {"routes": "pulumi"}},
        {"executors": {"route": "pulum"}},
        {"workloads": "yes"},
        {"sourceRanges": ["10.0.0.0"]},
        {"sourceRanges": "10.0.0.0/8"},
        {"mycloud": {"endpoint": "host:7070"}},
        {"mycloud": {"endpont": "http://host:7070"}},
    ],
)
def test_an_editor_marks_what_the_program_would_refuse(more: dict[str, Any]) -> None:
    right = {"cloud": "mycloud", "clusterName": "c", "nodePools": [pool()], "mycloud": {"endpoint": "http://h:1"}}
    jsonschema.validate(in_a_file(right), schema())

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(in_a_file({**right, **more}), schema())
    refused(**more)


def test_an_editor_marks_a_token_in_plain_text_and_a_file_without_config() -> None:
    plain = in_a_file({"cloud": "mycloud", "clusterName": "c", "nodePools": [pool()]})
    plain["config"][f"{NAMESPACE}:mycloudToken"] = TOKEN

    files: list[dict[str, Any]] = [plain, {"confg": {}}]
    for wrong in files:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2000) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
"""Anything that a stack file may hold."""

POOLS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["cp", "w", "W", ""]) | JSON,
            "role": st.sampled_from(["control-plane", "worker", "x"]) | JSON,
            "count": st.integers(-1, 3) | JSON,
            "type": st.just("m1.small") | JSON,
            "zones": st.just(["zone-a"]) | JSON,
            "ingress": JSON,
            "labels": JSON,
            "other": JSON,
        },
    ),
    max_size=3,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "cloud": st.just("mycloud") | st.text(max_size=8),
            "clusterName": st.just("c") | st.text(max_size=8),
            "nodePools": POOLS | JSON,
            "executors": st.dictionaries(st.sampled_from(["node", "service", "x"]), JSON) | JSON,
            "workloads": JSON,
            "mycloud": JSON,
            "mycloudToken": st.text(max_size=8),
            "other": JSON,
        },
    )
)
@settings(max_examples=100, deadline=None)
def test_any_stack_file_is_read_or_refused_with_a_message(more: dict[str, Any]) -> None:
    given_values = {**values(), **{k: v if isinstance(v, str) else json.dumps(v) for k, v in more.items()}}

    try:
        config = parse(given_values, SECRETS)
    except ConfigError as error:
        assert all(line.startswith(f"{NAMESPACE}:") for line in str(error).split("\n"))
    else:
        assert parse(given_values, SECRETS) == config


SECRET_TEXTS = st.text("JKQXZ0123456789+/_", min_size=12, max_size=24)


@given(
    SECRET_TEXTS,
    st.sampled_from(["cloud", "clusterName", "nodePools", "executors", "sourceRanges", "mycloud", "mycloudToken"]),
    st.sampled_from(
        [
            lambda secret: secret,
            lambda secret: [secret],
            lambda secret: {secret: secret},
            lambda secret: {"endpoint": secret},
            lambda secret: {"route": secret},
            lambda secret: [pool(name=secret)],
            lambda secret: [pool(labels={secret: "x y"})],
            lambda secret: [pool(role=secret, zones=secret)],
        ]
    ),
)
@settings(max_examples=200, deadline=None)
def test_no_error_shows_the_content_of_a_secret(secret: str, key: str, shape: Callable[[str], Any]) -> None:
    value = shape(secret)
    given_values = {**values(), key: value if isinstance(value, str) else json.dumps(value)}

    try:
        parse(given_values, {key})
    except ConfigError as error:
        assert secret not in str(error)
