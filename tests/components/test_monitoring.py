"""The component that brings alert rules, dashboard and scrapes, and the command that prints the same objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloud_controller.cli import commands as cli
from cloud_controller.monitoring.alerts import groups
from components.inputs import WrongInput
from components.monitoring import Monitoring
from tests.components.conftest import unwrap

STACKS = Path(__file__).parents[2] / "stacks"
MANIFESTS = ["manifests", "--cloud=mycloud", "--image=registry.example/ccm:1.0.0", "--controllers=node"]


def made(run_program: Any, **args: Any) -> list[dict[str, Any]]:
    recording = run_program(lambda: Monitoring("m", {"cloud": "mycloud", **args}), outputs={})  # type: ignore[typeddict-item]
    return [unwrap(each.inputs) for each in recording.registrations if each.request.type.startswith("kubernetes:")]


def by_kind(objects: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for each in objects:
        found.setdefault(each["kind"], []).append(each)
    return found


def printed(capsys: pytest.CaptureFixture[str], *more: str) -> list[Any]:
    assert cli.main([*MANIFESTS, *more]) == 0
    return [*yaml.safe_load_all(capsys.readouterr().out)]


@pytest.mark.parametrize("mode", ["operator", "annotations"])
def test_the_command_prints_what_the_component_makes(
    mode: str, run_program: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    account = "watching/prometheus"

    of_component = made(run_program, mode=mode, scraper=account)
    with_it = printed(capsys, f"--monitoring={mode}", f"--prometheus-account={account}")
    without = printed(capsys)

    named = {(each["kind"], each["metadata"]["name"]) for each in without}
    new = [each for each in with_it if (each["kind"], each["metadata"]["name"]) not in named]
    assert by_kind(of_component) == by_kind(new)


@pytest.mark.parametrize(("mode", "annotated"), [("operator", False), ("annotations", True), ("off", True)])
def test_pods_that_the_operator_scrapes_ask_nobody_else_to_scrape_them(
    mode: str, annotated: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    (workload,) = by_kind(printed(capsys, f"--monitoring={mode}"))["DaemonSet"]

    annotations = workload["spec"]["template"]["metadata"]["annotations"]
    assert any(key.startswith("prometheus.io/") for key in annotations) is annotated


def test_the_operator_scrapes_every_pod_over_tls_with_prometheus_own_token(run_program: Any) -> None:
    found = by_kind(made(run_program, mode="operator"))
    (service,), (monitor,) = found["Service"], found["ServiceMonitor"]
    (endpoint,) = monitor["spec"]["endpoints"]

    assert service["spec"]["selector"] == service["metadata"]["labels"] == monitor["spec"]["selector"]["matchLabels"]
    assert service["metadata"]["namespace"] in monitor["spec"]["namespaceSelector"]["matchNames"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    assert (endpoint["scheme"], endpoint["tlsConfig"]) == ("https", {"insecureSkipVerify": True})
    assert endpoint["bearerTokenFile"] == "/var/run/secrets/kubernetes.io/serviceaccount/token"


def test_prometheus_may_read_the_metrics_and_nothing_else(run_program: Any) -> None:
    found = by_kind(made(run_program, mode="annotations", scraper="watching/prometheus"))
    (role,), (binding,) = found["ClusterRole"], found["ClusterRoleBinding"]

    assert role["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "namespace": "watching", "name": "prometheus"}]


def test_the_job_label_of_the_scrapes_is_the_one_that_the_alerts_read(run_program: Any) -> None:
    found = by_kind(made(run_program, mode="operator", name="our-ccm"))
    (service,), (monitor,), (rule,) = found["Service"], found["ServiceMonitor"], found["PrometheusRule"]

    job = service["metadata"]["labels"][monitor["spec"]["jobLabel"]]
    assert job == "our-ccm"
    assert rule["spec"]["groups"][0]["rules"] == groups("mycloud", job=job)[0]["rules"]


def test_labels_are_on_what_the_operator_selects_by_them(run_program: Any) -> None:
    found = by_kind(made(run_program, mode="operator", labels={"release": "prometheus"}))

    for kind in ("ServiceMonitor", "PrometheusRule"):
        assert found[kind][0]["metadata"]["labels"]["release"] == "prometheus"


def test_grafana_finds_the_dashboard_by_its_label(run_program: Any) -> None:
    (dashboard,) = by_kind(made(run_program, mode="operator"))["ConfigMap"]

    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    (text,) = dashboard["data"].values()
    assert json.loads(text)["panels"]


def test_without_the_operator_the_rules_are_a_file_in_a_config_map(run_program: Any) -> None:
    config_maps = by_kind(made(run_program, mode="annotations"))["ConfigMap"]
    (rules,) = [each for each in config_maps if "grafana_dashboard" not in each["metadata"]["labels"]]

    (text,) = rules["data"].values()
    assert yaml.safe_load(text) == {"groups": groups("mycloud")}


@pytest.mark.parametrize(
    ("wrong", "allowed"), [({"mode": "off"}, "operator, annotations"), ({"scraper": "prometheus"}, "NAMESPACE/NAME")]
)
def test_wrong_arguments_are_refused(run_program: Any, wrong: dict[str, str], allowed: str) -> None:
    with pytest.raises(WrongInput, match=allowed):
        made(run_program, **{"mode": "operator", **wrong})


@pytest.mark.parametrize("stack", ["aws-prod", "mycloud-prod"])
def test_a_production_stack_with_our_daemon_brings_the_alert_rules(stack: str) -> None:
    config = yaml.safe_load((STACKS / f"Pulumi.{stack}.yaml").read_text())["config"]

    assert config["cloud-controller:monitoring"] == "annotations"
