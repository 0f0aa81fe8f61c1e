"""`plan -f` against a real API server and mycloud: what apply would store is what is planned. Nothing is written."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cloud_controller import clouds, service_admission
from cloud_controller.cli import commands as cli
from cloud_controller.cli.planned_service import ATTENTION, CHANGES
from cloud_controller.cli.service_merge import LAST_APPLIED
from cloud_controller.kube import NAMESPACES, SERVICES, ApiError, Kube, Object, PatchType, name
from cloud_controller.service_admission import LABEL, Admission
from local.control_plane.control_plane import ControlPlane
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

pytestmark = pytest.mark.control_plane

SCHEME = clouds.descriptor("mycloud").catalogue.by_argument["scheme"].name
_numbers = itertools.count()


@pytest.fixture
def namespace(kube: Kube) -> Iterator[str]:
    """A namespace of this test's own, without its Services afterwards."""
    made = f"planned-{next(_numbers)}"
    kube.create(NAMESPACES, {"metadata": {"name": made}})
    yield made
    for service in kube.list(SERVICES, made).items:
        kube.patch(SERVICES, name(service), {"metadata": {"finalizers": None}}, made, type=PatchType.MERGE)
        kube.delete(SERVICES, name(service), made)


class Commands:
    """The command line with a kubeconfig whose context is in this test's namespace."""

    def __init__(self, directory: Path, site: MyCloudSite, kubeconfig: str, namespace: str) -> None:
        document = yaml.safe_load(kubeconfig)
        document["contexts"][0]["context"]["namespace"] = namespace
        (directory / "kubeconfig").write_text(yaml.safe_dump(document))
        (directory / "token").write_text(site.controllers_token)
        config = ("[Global]", f"endpoint = {site.endpoint}", f"token-file = {directory}/token")
        (directory / "cloud.conf").write_text("\n".join([*config, f"cluster-id = {site.cluster['id']}", ""]))
        self.directory = directory
        self.options = [
            "--cloud=mycloud",
            f"--cloud-config={directory}/cloud.conf",
            f"--kubeconfig={directory}/kubeconfig",
            "--log-level=error",
        ]

    def plan(self, *services: Object, more: tuple[str, ...] = ()) -> int:
        """The exit code of the plan of a file with these Services."""
        (self.directory / "services.yaml").write_text(yaml.safe_dump_all(services))
        file = f"--filename={self.directory}/services.yaml"
        return cli.main(["plan", *self.options, file, "--detailed-exitcode", *more])

    def apply(self) -> int:
        options = [*self.options, "--controllers=service", "--yes", "--leader-elect=false"]
        return cli.main(["apply", *options])


@pytest.fixture
def commands(tmp_path: Path, site: MyCloudSite, control_plane: ControlPlane, namespace: str) -> Commands:
    kubeconfig = control_plane.kubeconfig("admin", ["system:masters"], timedelta(hours=1))
    return Commands(tmp_path, site, kubeconfig, namespace)


def manifest(
    name: str = "web", *, annotations: dict[str, str] | None = None, ports: tuple[int, ...] = (8080,)
) -> Object:
    metadata: Object = {"name": name} | ({"annotations": annotations} if annotations else {})
    each = [{"name": f"p{port}", "port": port} for port in ports]
    spec = {"type": "LoadBalancer", "selector": {"app": name}, "ports": each}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def applied(kube: Kube, namespace: str, service: Object) -> Object:
    """The Service as `kubectl apply` creates it."""
    last = {**service, "metadata": {**service["metadata"], "namespace": namespace}}
    annotations = {**service["metadata"].get("annotations", {}), LAST_APPLIED: json.dumps(last)}
    return kube.create(SERVICES, {**last, "metadata": {**last["metadata"], "annotations": annotations}}, namespace)


def result(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def outcomes(document: Any) -> dict[str, str]:
    return {each["service"].partition("/")[2]: each["outcome"] for each in document["services"]}


def test_a_new_service_is_planned_with_what_the_api_server_adds_and_nothing_is_written(
    commands: Commands, kube: Kube, site: MyCloudSite, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kube.create(SERVICES, manifest("stored"), namespace)
    writes = site.writes()

    code = commands.plan(manifest(), {"apiVersion": "v1", "kind": "ConfigMap"}, more=("-o=json",))

    document = result(capsys)
    assert (code, outcomes(document), document["ignored"]) == (CHANGES, {"web": "created"}, 1)

    # Without admission, the controller itself would refuse it.
    assert commands.plan(manifest(annotations={f"{SCHEME}s": "internal"}), more=("-o=json",)) == ATTENTION

    [web] = result(capsys)["services"]
    assert (web["outcome"], web["refusal"].partition(";")[0]) == (
        "refused",
        f"annotation {SCHEME}s: unknown on mycloud",
    )
    assert [name(each) for each in kube.list(SERVICES, namespace).items] == ["stored"]
    assert site.writes() == writes


@pytest.mark.usefixtures("data_plane")
def test_a_changed_manifest_is_merged_with_the_one_that_kubectl_applied_last(
    commands: Commands, kube: Kube, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    applied(
        kube, namespace, manifest("web", annotations={SCHEME: "internal", "example.com/a": "1"}, ports=(8080, 8443))
    )
    applied(kube, namespace, manifest("same"))
    kube.patch(SERVICES, "web", {"metadata": {"annotations": {"example.com/b": "2"}}}, namespace, type=PatchType.MERGE)
    assert commands.apply() == 0
    stored = kube.get(SERVICES, "web", namespace)
    capsys.readouterr()

    # Then: port 8443 goes, the annotation goes, and so does the address.
    code = commands.plan(manifest("web"), manifest("same"), more=("-o=json",))

    document = result(capsys)
    assert (code, outcomes(document)) == (ATTENTION, {"web": "address replaced", "same": "up to date"})
    [replaced] = [action for action in document["services"][0]["actions"] if action["kind"] == "replace"]
    assert replaced["changes"] == [{"field": "scheme", "before": "internal", "after": "internet-facing"}]
    assert "8080/TCP; 0 backends" in replaced["summary"]

    # Where the daemon would hold that, the plan has the annotation with which the same commit lets it happen.
    held = ("-o=json", "--address-changes=acknowledge")
    assert commands.plan(manifest("web"), more=held) == ATTENTION
    [web] = result(capsys)["services"]
    [line] = [action["acknowledgement"] for action in web["actions"] if "acknowledgement" in action]
    assert commands.plan(manifest("web", annotations=yaml.safe_load(line)), more=held) == ATTENTION
    [web] = result(capsys)["services"]
    assert web["outcome"] == "address replaced"
    assert not any("held" in action for action in web["actions"])
    assert kube.get(SERVICES, "web", namespace) == stored


@pytest.mark.usefixtures("data_plane")
def test_another_manager_of_a_field_is_a_refusal_unless_conflicts_are_forced(
    commands: Commands, kube: Kube, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def server_side(manager: str, service: Object) -> None:
        given = {**service, "metadata": {**service["metadata"], "namespace": namespace}}
        kube.patch(SERVICES, "web", given, namespace, type=PatchType.APPLY, field_manager=manager)

    server_side("argocd", manifest("web", ports=(8080, 8443)))
    assert commands.apply() == 0
    capsys.readouterr()

    # What its manager no longer names goes.
    assert commands.plan(manifest("web"), more=("-o=json",)) == CHANGES
    [web] = result(capsys)["services"]
    assert web["actions"][0]["target"].endswith("/web/listener/8443/TCP")

    other = {"metadata": {"annotations": {SCHEME: "internet-facing"}}}
    kube.patch(SERVICES, "web", other, namespace, type=PatchType.MERGE, field_manager="somebody")
    wanted = manifest("web", annotations={SCHEME: "internal"}, ports=(8080, 8443))
    assert commands.plan(wanted, more=("-o=json",)) == ATTENTION
    [web] = result(capsys)["services"]
    assert web["outcome"] == "refused"
    assert 'conflict with "somebody"' in web["refusal"]

    assert commands.plan(wanted, more=("-o=json", "--force-conflicts")) == ATTENTION
    assert outcomes(result(capsys)) == {"web": "address replaced"}


def test_what_the_api_server_refuses_is_reported_in_its_words_at_the_line(
    commands: Commands, kube: Kube, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud = clouds.descriptor("mycloud")
    for each in service_admission.make(cloud.catalogue, {None}, Admission.DENY, {}):
        if each["kind"] == "ValidatingAdmissionPolicyBinding":
            only = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
            each["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"].append(only)
        kube.create(kube.resource(each["apiVersion"], each["kind"]), each)
    wrong = manifest("wrong", annotations={"service.beta.kubernetes.io/dlb-sheme": "internal"})

    def counts() -> bool:
        try:
            kube.create(SERVICES, wrong, namespace, dry_run=True)
        except ApiError:
            return True
        return False

    eventually(counts, "the policy counts")
    misspelt = manifest("misspelt")
    misspelt["spec"]["externalTraficPolicy"] = "Local"
    late = {**manifest("late"), "metadata": {"name": "late", "namespace": "not-yet"}}
    later = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "not-yet"}}
    nowhere = {**manifest("nowhere"), "metadata": {"name": "nowhere", "namespace": "nowhere"}}

    code = commands.plan(wrong, misspelt, late, later, nowhere, manifest("fine"), more=("-o=json",))

    document = result(capsys)
    assert code == ATTENTION
    assert outcomes(document) == {
        "wrong": "refused",
        "misspelt": "refused",
        "late": "created",
        "nowhere": "refused",
        "fine": "created",
    }
    refused = {each["service"].partition("/")[2]: each for each in document["services"]}
    assert "dlb-sheme: unknown on mycloud" in refused["wrong"]["refusal"]
    lines = (commands.directory / "services.yaml").read_text().splitlines()
    assert "dlb-sheme" in lines[refused["wrong"]["line"] - 1]
    assert "externalTraficPolicy" in refused["misspelt"]["refusal"]
    assert 'namespaces "nowhere" not found' in refused["nowhere"]["refusal"]
    assert all(action["assumed"] for action in refused["late"]["actions"])
    assert "namespace not-yet does not exist yet" in document["notes"][0]

    # Where the policy only warns, the controller still refuses the Service.
    kube.patch(NAMESPACES, namespace, {"metadata": {"labels": {LABEL: Admission.WARN}}}, type=PatchType.MERGE)
    eventually(lambda: not counts(), "the policy only warns")
    assert commands.plan(wrong, more=("-o=json",)) == ATTENTION
    [warned] = result(capsys)["services"]
    assert warned["refusal"].startswith("annotation service.beta.kubernetes.io/dlb-sheme: unknown on mycloud")
    assert "dlb-sheme: unknown on mycloud" in warned["warnings"][0]


def test_a_node_port_goes_to_one_service_of_the_manifests_and_of_the_cluster(
    commands: Commands, kube: Kube, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def asking(name: str, number: int) -> Object:
        asked = manifest(name)
        asked["spec"]["ports"][0]["nodePort"] = number
        return asked

    applied(kube, namespace, asking("old", 30981))

    code = commands.plan(*(asking(name, number) for name, number in (("a", 30981), ("b", 30982), ("c", 30982))))

    output = capsys.readouterr().out
    assert code == ATTENTION
    assert "provided port is already allocated" in output
    assert f"spec.ports[0].nodePort: 30982 is also a node port of Service {namespace}/b" in output
    assert "2 refused, 1 created" in output


def test_any_number_of_services_costs_the_calls_of_one_snapshot(
    commands: Commands, site: MyCloudSite, capsys: pytest.CaptureFixture[str]
) -> None:
    def calls(count: int) -> dict[str, int]:
        before = site.context.calls.all()
        assert commands.plan(*(manifest(f"web-{index}") for index in range(count))) == CHANGES
        after = site.context.calls.all()
        return {operation: after[operation] - before.get(operation, 0) for operation in after}

    few, many = calls(2), calls(40)

    assert few == many
    assert "40 Services: 40 created" in capsys.readouterr().out
