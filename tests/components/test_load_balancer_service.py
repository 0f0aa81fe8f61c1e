"""The component LoadBalancerService: typed settings become annotations, mistakes are named, destroy's order is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from cloud_controller.clouds.aws.annotations import PREFIX as AWS_PREFIX
from cloud_controller.clouds.mycloud.annotations import PREFIX
from components.clouds.aws.load_balancer import AwsLoadBalancerArgs
from components.load_balancer_service import LoadBalancerService

SERVICE = "kubernetes:core/v1:Service"


def args(**more: Any) -> Any:
    return {"cloud": "mycloud", "selector": {"app": "web"}, "ports": [{"port": 8080}], **more}


def test_typed_settings_become_the_catalogues_annotations(run_program: Any) -> None:
    settings = {"listener_max_qps": 100, "scheme": "internal"}

    recording = run_program(lambda: LoadBalancerService("web", args(settings=settings)))

    annotations = recording.one(SERVICE, "web").inputs["metadata"]["annotations"]
    assert annotations == {f"{PREFIX}listener-maxqps": "100", f"{PREFIX}scheme": "internal"}


def test_without_settings_no_annotations_are_sent(run_program: Any) -> None:
    recording = run_program(lambda: LoadBalancerService("web", args()))

    assert "annotations" not in recording.one(SERVICE, "web").inputs["metadata"]


def test_a_setting_that_is_an_output_is_rendered_when_it_is_known(run_program: Any) -> None:
    def program() -> None:
        LoadBalancerService("web", args(settings={"listener_max_qps": pulumi.Output.from_input(7)}))

    recording = run_program(program)

    annotations = recording.one(SERVICE, "web").inputs["metadata"]["annotations"]
    assert annotations == {f"{PREFIX}listener-maxqps": "7"}


def test_raw_annotations_win_over_settings_and_foreign_ones_pass(run_program: Any) -> None:
    raw = {f"{PREFIX}listener-maxqps": "5", "example.com/team": "edge"}

    recording = run_program(
        lambda: LoadBalancerService("web", args(settings={"listener_max_qps": 100}, annotations=raw))
    )

    assert recording.one(SERVICE, "web").inputs["metadata"]["annotations"] == raw


@pytest.mark.parametrize(
    ("more", "path", "hint"),
    [
        ({"settings": {"listener_max_qps": 0}}, "settings.listener_max_qps", "from 1 to"),
        ({"settings": {"listener_max_qbs": 1}}, "settings.listener_max_qbs", "did you mean listener_max_qps?"),
        ({"settings": {"scheme": "public"}}, "settings.scheme", "internet-facing, internal"),
        ({"annotations": {f"{PREFIX}listener-maxqp": "1"}}, f"annotations[{PREFIX}listener-maxqp]", "listener-maxqps"),
        ({"annotations": {f"{PREFIX}scheme": "x"}}, f"annotations[{PREFIX}scheme]", "internal"),
        ({"ports": []}, "ports", "at least one"),
        ({"ports": [{"port": 0}]}, "ports[0].port", "1 to 65535"),
        ({"ports": [{"port": 80, "protocol": "SCTP"}]}, "ports[0].protocol", "TCP, UDP"),
        ({"source_ranges": ["10.0.0.0/8", "10.0.0.1"]}, "source_ranges[1]", "10.4.0.0/16"),
        ({"source_ranges": ["10.0.0.0/255.0.0.0"]}, "source_ranges[0]", "10.4.0.0/16"),
        ({"source_range": ["10.0.0.0/8"]}, "source_range", "did you mean source_ranges?"),
        ({"ports": [{"port": 80, "targetPort": 8080}]}, "ports[0].targetPort", "did you mean target_port?"),
        ({"external_traffic_policy": "local"}, "external_traffic_policy", "Cluster, Local"),
        ({"cloud": "nimbus"}, "cloud", "mycloud"),
        (
            {"load_balancer_class": "example.com/a"},
            "load_balancer_class",
            "allowed: mycloud.io/load-balancer, not set",
        ),
        ({"load_balancer_class": "a/b", "served_classes": []}, "load_balancer_class", "allowed: not set; to use"),
        ({"load_balancer_class": "a/b", "served_classes": ["c/d"]}, "load_balancer_class", "add it to served_classes"),
        ({"cluster": {"cluster_id": "c-1"}}, "cluster.network_id", "is missing"),
    ],
)
def test_a_wrong_input_is_refused_by_its_name(more: Any, path: str, hint: str, run_program: Any) -> None:
    with pytest.raises(pulumi.InputPropertyError) as caught:
        run_program(lambda: LoadBalancerService("web", args(**more)))

    assert caught.value.property_path == path
    assert hint in caught.value.reason


def test_a_refusal_begins_with_the_component_and_the_line_that_makes_it(run_program: Any) -> None:
    def program() -> None:
        LoadBalancerService("web", args(ports=[{"target_port": 80}]))

    with pytest.raises(pulumi.InputPropertyError) as caught:
        run_program(program)

    where = f"tests/components/{Path(__file__).name}:{program.__code__.co_firstlineno + 1}"
    told = f"LoadBalancerService 'web' ({where}): ports[0].port: is missing; allowed: a whole number"
    assert str(caught.value) == told


def test_a_setting_that_becomes_known_later_is_refused_by_its_component_too(run_program: Any) -> None:
    settings = {"listener_max_qps": pulumi.Output.from_input("many")}

    with pytest.raises(pulumi.InputPropertyError) as caught:
        run_program(lambda: LoadBalancerService("web", args(settings=settings)))

    assert str(caught.value).startswith("LoadBalancerService 'web': settings.listener_max_qps: 'many'")


@pytest.mark.parametrize(
    "given",
    [
        {"settings": {"scheme": "hush-hush"}},
        {"load_balancer_class": "hush-hush"},
        {"settings": {"scheme": "internal", "listener_max_qps": "hush-hush"}},
    ],
)
def test_a_secret_that_is_refused_is_not_shown(run_program: Any, given: dict[str, Any]) -> None:
    def secret(value: Any) -> Any:
        return (
            {key: secret(each) for key, each in value.items()}
            if isinstance(value, dict)
            else pulumi.Output.secret(value)
        )

    with pytest.raises(pulumi.InputPropertyError) as caught:
        run_program(lambda: LoadBalancerService("web", args(**{key: secret(each) for key, each in given.items()})))

    assert ": the secret value" in str(caught.value) and "; allowed: " in str(caught.value)
    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize(("scheme", "refused"), [("internal", False), ("internet-facing", True)])
def test_annotations_are_judged_together_once_all_are_known(run_program: Any, scheme: str, refused: bool) -> None:
    asked = {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}

    def program() -> None:
        LoadBalancerService("web", args(settings={"scheme": pulumi.Output.from_input(scheme)}, annotations=asked))

    if not refused:
        assert run_program(program).one(SERVICE, "web")
        return
    with pytest.raises(pulumi.InputPropertyError, match=r"LoadBalancerService 'web': .*it would be public"):
        run_program(program)


def test_annotations_that_turn_out_as_nothing_or_a_number_are_judged_as_texts(run_program: Any) -> None:
    def program() -> None:
        settings = {"scheme": pulumi.Output.from_input("internal")}
        odd: Any = {"example.com/a": pulumi.Output.from_input(None), "example.com/b": pulumi.Output.from_input(5)}
        LoadBalancerService("web", args(settings=settings, annotations=odd))

    assert run_program(program).one(SERVICE, "web")


def test_a_misspelt_annotation_is_refused_beside_one_that_is_not_known_yet(run_program: Any) -> None:
    def program() -> None:
        settings = {"scheme": pulumi.Output.from_input("internal")}
        LoadBalancerService("web", args(settings=settings, annotations={f"{PREFIX}schema": "internal"}))

    with pytest.raises(pulumi.InputPropertyError, match=f"{PREFIX}schema.*did you mean"):
        run_program(program)


def test_source_ranges_are_in_the_services_spec_and_none_means_everyone(run_program: Any) -> None:
    def program() -> None:
        LoadBalancerService("some", args(source_ranges=["10.0.0.0/8"]))
        LoadBalancerService("later", args(source_ranges=pulumi.Output.from_input(["10.0.0.0/8"])))
        LoadBalancerService("all", args(source_ranges=[]))
        LoadBalancerService("too", args(source_ranges=None))

    recording = run_program(program)

    for name in ("some", "later"):
        assert recording.one(SERVICE, name).inputs["spec"]["loadBalancerSourceRanges"] == ["10.0.0.0/8"]
    for name in ("all", "too"):
        assert "loadBalancerSourceRanges" not in recording.one(SERVICE, name).inputs["spec"]


def test_a_load_balancer_is_awaited_for_five_minutes_or_the_given_timeout(run_program: Any) -> None:
    def program() -> None:
        LoadBalancerService("web", args())
        patient = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="20m"))
        LoadBalancerService("slow", args(), opts=patient)

    recording = run_program(program)

    web, slow = (recording.one(SERVICE, name).request.customTimeouts for name in ("web", "slow"))
    assert (web.create, web.update, web.delete) == ("5m", "5m", "5m")
    assert (slow.create, slow.update, slow.delete) == ("20m", "", "")


def test_a_load_balancer_service_refuses_deleted_with(run_program: Any) -> None:
    def program() -> None:
        cluster = kubernetes.core.v1.Namespace("n")
        LoadBalancerService("web", args(), opts=pulumi.ResourceOptions(deleted_with=cluster))

    with pytest.raises(pulumi.InputPropertyError) as caught:
        run_program(program)

    assert caught.value.property_path == "opts.deleted_with"


def test_the_service_itself_depends_on_what_the_component_depends_on(run_program: Any) -> None:
    def program() -> None:
        manager = kubernetes.core.v1.Namespace("manager")
        LoadBalancerService("web", args(), opts=pulumi.ResourceOptions(depends_on=[manager]))

    recording = run_program(program)

    manager = recording.one("kubernetes:core/v1:Namespace", "manager")
    assert manager.urn in recording.one(SERVICE, "web").request.dependencies


def test_a_change_of_class_deletes_the_service_before_it_is_replaced(run_program: Any) -> None:
    of_class = {"load_balancer_class": "example.com/a", "served_classes": ["example.com/a"]}

    recording = run_program(lambda: LoadBalancerService("web", args(**of_class)))

    request = recording.one(SERVICE, "web").request
    assert list(request.replaceOnChanges) == ["spec.loadBalancerClass"]
    assert request.deleteBeforeReplace
    assert not request.deletedWith


def test_a_setting_that_is_given_by_port_is_an_annotation_for_each_port(run_program: Any) -> None:
    given: AwsLoadBalancerArgs = {"type": "nlb", "listener_attributes": {"TCP-80": ["tcp.idle_timeout.seconds=60"]}}

    recording = run_program(lambda: LoadBalancerService("web", args(cloud="aws", settings=given)))

    annotations = recording.one(SERVICE, "web").inputs["metadata"]["annotations"]
    assert annotations[f"{AWS_PREFIX}listener-attributes.TCP-80"] == "tcp.idle_timeout.seconds=60"


def test_an_invalid_port_in_a_setting_is_refused_with_the_settings_name(run_program: Any) -> None:
    given: AwsLoadBalancerArgs = {"listener_attributes": {"80": ["tcp.idle_timeout.seconds=60"]}}

    with pytest.raises(
        pulumi.InputPropertyError, match=r"settings.listener_attributes: '80' is not a valid PROTOCOL-PORT"
    ):
        run_program(lambda: LoadBalancerService("web", args(cloud="aws", settings=given)))


def test_a_change_that_costs_the_address_warns_before_the_update(run_program: Any) -> None:
    recording = run_program(lambda: LoadBalancerService("web", args()))

    assert [*recording.one(SERVICE, "web").request.hooks.before_update] == ["address-of-web"]
