"""Packages that cannot run here: previews are complete, updates simulate, and nothing simulated is treated as real."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes
import pytest
from local.engine.cli import main
from local.engine.display.words import note_of
from local.engine.events import StepDone
from local.engine.providers.dynamic import DynamicProvider
from local.engine.providers.registry import OTHERS

from cloud_controller.clouds.aws.config import parse
from local.aws.provider.recorded import recorder
from local.plugins.dynamic import PACKAGE, DynamicServer
from local.plugins.kubernetes.provider import KubernetesProvider
from local.plugins.recorder import Recorder

pytestmark = pytest.mark.engine


@pytest.fixture
def recorded(stack: Any) -> Any:
    """A stack whose clouds are all recorded, beside the real Kubernetes provider."""
    stack.factories |= {
        "aws": lambda r: recorder(r.inputs),
        "kubernetes": lambda r: KubernetesProvider(r.inputs),
        OTHERS: lambda r: Recorder(r.inputs),
    }
    stack.configure({"aws:region": "eu-south-9"})
    return stack


def network(cidr: str = "10.0.0.0/16", **options: Any) -> aws.ec2.Vpc:
    return aws.ec2.Vpc("net", cidr_block=cidr, tags={"a": "b"}, opts=pulumi.ResourceOptions(**options))


def cluster(vpc: aws.ec2.Vpc) -> aws.eks.Cluster:
    subnet = aws.ec2.Subnet("a", vpc_id=vpc.id, cidr_block="10.0.1.0/24")
    return aws.eks.Cluster("main", role_arn="arn:aws:iam::1:role/x", vpc_config={"subnet_ids": [subnet.id]})


def kubeconfig(of: aws.eks.Cluster) -> pulumi.Output[str]:
    def render(values: list[Any]) -> str:
        server, authority = values
        assert authority
        return (
            "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {token: t}}],\n"
            " contexts: [{name: c, context: {cluster: c, user: u}}],\n"
            f" clusters: [{{name: c, cluster: {{server: '{server}'}}}}]}}"
        )

    return pulumi.Output.secret(pulumi.Output.all(of.endpoint, of.certificate_authority.data).apply(render))


def whole_program() -> None:
    api = kubernetes.Provider("api", kubeconfig=kubeconfig(cluster(network())))
    service = kubernetes.core.v1.Service(
        "web",
        metadata={"namespace": "shop", "name": "web"},
        spec={"type": "LoadBalancer", "ports": [{"port": 80}]},
        opts=pulumi.ResourceOptions(provider=api),
    )
    pulumi.export("host", service.status.load_balancer.ingress[0].hostname)


def test_a_preview_of_a_simulated_resource_shows_inputs_and_unknown_outputs(recorded: Any) -> None:
    seen: list[Any] = []

    def program() -> None:
        vpc = network()
        pulumi.Output.all(vpc.cidr_block).apply(seen.append)
        pulumi.Output.all(vpc.arn).apply(seen.append)

    outcome = recorded.preview(program)

    assert outcome.ok and seen == [["10.0.0.0/16"]]
    assert outcome.counts == {"create": 2}


def test_fields_that_the_cloud_adds_within_an_input_are_unknown_in_a_preview(recorded: Any) -> None:
    seen: list[Any] = []

    def program() -> None:
        made = cluster(network())
        pulumi.Output.all(made.vpc_config.cluster_security_group_id).apply(seen.append)

    assert recorded.preview(program).ok and seen == []
    assert recorded.up(program).ok and seen[0][0].startswith("simulated-")


def test_an_update_simulates_marked_outputs_and_the_next_changes_nothing(recorded: Any) -> None:
    assert recorded.up(whole_program).ok

    made = recorded.resources()
    assert made["a"].id.startswith("simulated-") and made["a"].outputs["arn"].endswith(made["a"].id)
    assert made["net"].id.startswith("vpc-")
    assert made["main"].outputs["endpoint"].endswith(".simulated.invalid")
    assert made["main"].outputs["region"] == "eu-south-9"
    assert made["web"].id == "shop/web"
    assert all(made[name].simulated for name in ("net", "a", "main", "web"))
    assert recorded.up(whole_program).counts == {"same": 6}
    assert recorded.refresh().counts == {"same": 6}


def test_a_simulated_vpc_has_an_id_that_a_cloud_config_may_name(recorded: Any) -> None:
    recorded.up(network)

    vpc_id = recorded.resources()["net"].id
    text = f"[Global]\nKubernetesClusterID = shop\nRegion = eu-south-9\nVPC = {vpc_id}\n"
    assert parse(text).vpc_id == vpc_id


def test_two_stacks_of_the_same_program_simulate_equal_outputs(recorded: Any) -> None:
    recorded.up(whole_program)
    first = {r.name: (r.id, r.outputs) for r in recorded.resources().values() if r.provider}
    recorded.forget()

    recorded.up(whole_program)

    assert {r.name: (r.id, r.outputs) for r in recorded.resources().values() if r.provider} == first


def test_each_simulated_resource_and_the_run_are_marked_as_simulated(recorded: Any) -> None:
    outcome = recorded.up(whole_program)

    done = {e.step.type: e.step for e in outcome.events if isinstance(e, StepDone)}
    assert note_of(done["aws:ec2/vpc:Vpc"], refreshing=False) == "[simulated]"
    assert note_of(done["pulumi:pulumi:Stack"], refreshing=False) == ""
    assert len(outcome.warnings) == 1 and "3 of aws, 1 of kubernetes" in outcome.warnings[0]


def address(pool: str, **options: Any) -> aws.ec2.Eip:
    return aws.ec2.Eip("out", public_ipv4_pool=pool, opts=pulumi.ResourceOptions(**options))


def test_a_change_of_a_simulated_resource_is_an_update_that_keeps_the_id(recorded: Any) -> None:
    recorded.up(lambda: address("mine"))
    before = recorded.resources()["out"]

    outcome = recorded.up(lambda: address("theirs"))

    after = recorded.resources()["out"]
    assert outcome.counts == {"same": 1, "update": 1}
    assert (after.id, after.outputs["arn"]) == (before.id, before.outputs["arn"])
    assert after.outputs["publicIpv4Pool"] == "theirs"


def test_a_requested_replacement_of_a_simulated_resource_has_another_id(recorded: Any) -> None:
    recorded.up(lambda: address("mine", replace_on_changes=["publicIpv4Pool"]))
    before = recorded.resources()["out"]

    outcome = recorded.up(lambda: address("theirs", replace_on_changes=["publicIpv4Pool"]))

    assert outcome.counts == {"same": 1, "replace": 1}
    assert recorded.resources()["out"].id != before.id


def test_a_simulated_resource_is_replaced_as_the_real_provider_would(recorded: Any) -> None:
    recorded.up(network)

    assert recorded.up(lambda: network("10.1.0.0/16")).counts == {"same": 1, "replace": 1}


@pytest.mark.parametrize("view", ["export", "output"])
def test_export_and_output_warn_about_simulated_resources(
    recorded: Any, capsys: pytest.CaptureFixture[str], view: str
) -> None:
    recorded.up(lambda: pulumi.export("table", network().main_route_table_id))
    where = ["-C", str(recorded.directory), "--state", str(recorded.directory / "state")]

    assert main(["stack", view, "-s", "dev", *where]) == 0

    reported = capsys.readouterr()
    assert "nothing real behind them: 1" in reported.err and "simulated-" in reported.out


def test_destroy_forgets_all_simulated_resources(recorded: Any) -> None:
    recorded.up(whole_program)

    assert recorded.destroy().ok and recorded.resources() == {}


def test_secret_inputs_stay_secret(recorded: Any) -> None:
    recorded.up(lambda: aws.ec2.LaunchTemplate("t", user_data=pulumi.Output.secret("hunter2-in-base64")))

    assert "hunter2" not in recorded.files()
    assert repr(recorded.resources()["t"].outputs["userData"]) == "[secret]"


def test_a_known_function_has_a_simulated_answer(recorded: Any) -> None:
    seen: list[Any] = []

    def program() -> None:
        seen.append(aws.get_availability_zones(state="available").names)
        aws.get_caller_identity_output().account_id.apply(seen.append)

    assert recorded.preview(program).ok
    assert seen == [["eu-south-9a", "eu-south-9b", "eu-south-9c"], "000000000000"]


def test_a_package_that_no_cloud_describes_is_recorded_too(recorded: Any) -> None:
    def program(size: int) -> None:
        thing = pulumi.CustomResource("nimbus:index/thing:Thing", "one", {"size": size, "arn": None})
        pulumi.export("id", thing.id)

    assert recorded.up(lambda: program(1)).counts == {"create": 2}
    made = recorded.resources()["one"]
    assert made.simulated and made.id.startswith("simulated-") and made.outputs["size"] == 1
    assert recorded.up(lambda: program(1)).counts == {"same": 2}
    assert recorded.up(lambda: program(2)).counts == {"same": 1, "update": 1}
    outcome = recorded.preview(lambda: pulumi.runtime.invoke("nimbus:index/getThing:getThing", {}))
    assert "has no simulated answer; functions with one: none" in "\n".join(outcome.errors)


def test_an_unknown_function_is_refused_by_name(recorded: Any) -> None:
    outcome = recorded.preview(lambda: aws.ec2.get_subnet(vpc_id="v"))

    assert not outcome.ok and "aws:ec2/getSubnet:getSubnet has no simulated answer" in "\n".join(outcome.errors)


def test_reading_a_foreign_object_is_simulated_by_its_id(recorded: Any) -> None:
    seen: list[Any] = []

    def program() -> None:
        vpc = aws.ec2.Vpc.get("theirs", "vpc-1")
        pulumi.Output.all(vpc.id, vpc.default_security_group_id).apply(seen.append)

    assert recorded.up(program).ok
    assert seen[0][0] == "vpc-1" and seen[0][1].startswith("simulated-")


def test_an_import_of_a_simulated_resource_is_refused(recorded: Any) -> None:
    outcome = recorded.up(lambda: network(import_="vpc-1"))

    assert not outcome.ok and "cannot be imported" in outcome.errors[0]


def test_a_simulated_object_is_replaced_when_its_cluster_becomes_real(recorded: Any, kit: Any) -> None:
    """And the reverse."""
    recorded.up(lambda: kit.Thing("user", size=aws.ec2.Vpc("net", cidr_block="10.0.0.0/16").cidr_block))
    assert recorded.cloud.objects == {} and recorded.resources()["user"].simulated

    outcome = recorded.up(lambda: kit.Thing("user", size="10.0.0.0/16"))

    assert outcome.ok and "replace user" in outcome.done
    assert list(recorded.cloud.objects) == ["user-a"] and not recorded.resources()["user"].simulated

    recorded.up(lambda: kit.Thing("user", size=aws.ec2.Vpc("net", cidr_block="10.0.0.0/16").cidr_block))

    assert recorded.cloud.objects == {} and recorded.resources()["user"].simulated


ASKING = """
from pulumi.dynamic import CheckResult, Resource, ResourceProvider


class Provider(ResourceProvider):
    def check(self, olds, news):
        if isinstance(news["network"], str):
            raise ConnectionError("asked the cloud for " + news["network"])
        return CheckResult({**news, "plan": "not known yet"}, [])

    def create(self, props):
        raise ConnectionError("asked the cloud")


class Asking(Resource, module="test", name="Asking"):
    def __init__(self, name, network):
        super().__init__(Provider(), name, {"network": network, "plan": None})
"""


@pytest.fixture
def asking(recorded: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class of a dynamic resource that reads from a cloud as soon as it knows where."""
    module = f"recorder_asking_{abs(hash(recorded.directory))}"
    (recorded.directory / f"{module}.py").write_text(ASKING)
    monkeypatch.syspath_prepend(str(recorded.directory))
    server = DynamicServer(recorded.directory, "test", lambda _line: None)
    recorded.factories[PACKAGE] = lambda r: DynamicProvider(server, r.inputs, r.urn, str(r.id))
    yield importlib.import_module(module).Asking
    server.close()


def test_a_dynamic_resource_with_simulated_inputs_is_simulated_too(recorded: Any, asking: Any) -> None:
    """They are unknown to its check, even if the state has them, and the rest of it is only recorded."""
    first = recorded.up(lambda: asking("controller", network().id))
    second = recorded.up(lambda: asking("controller", network().id))

    made = recorded.resources()["controller"]
    assert first.ok and second.counts == {"same": 3}
    assert made.simulated and made.outputs["plan"] == "not known yet"
    assert made.inputs["network"] == recorded.resources()["net"].id


def test_a_run_names_the_functions_whose_answers_are_simulated(recorded: Any) -> None:
    seen: list[Any] = []

    def program() -> None:
        seen.append(aws.get_availability_zones(region="eu-north-9").names)

    outcome = recorded.preview(program)

    assert "getAvailabilityZones" in outcome.warnings[-1]
    assert seen == [["eu-north-9a", "eu-north-9b", "eu-north-9c"]]
