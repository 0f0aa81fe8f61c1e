"""A cloud of another distribution joins every layer by its entry points alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from cloud_controller import clouds, rbac
from cloud_controller.cli import annotation_docs
from cloud_controller.cli.commands import main
from cloud_controller.controller_names import controllers
from components import clouds as component_clouds
from components.inputs import WrongInput
from components.load_balancer_service import LoadBalancerService
from tests.components.conftest import run_program as run_program

CONFIG = "cluster: c-1\nmachines: {n1: 10.9.0.1}\n"


def test_the_controllers_know_an_installed_cloud() -> None:
    assert "tiny" in clouds.names()
    assert clouds.load("tiny", CONFIG).cluster_id == "c-1"


def test_the_page_of_annotations_has_a_section_for_it() -> None:
    page = annotation_docs.page()

    assert "## tiny\n" in page
    assert "`tiny.example.com/scheme`" in page


def test_its_checkpoint_is_among_the_rights_of_the_daemon(capsys: pytest.CaptureFixture[str]) -> None:
    main(["manifests", "--cloud=tiny", "--cluster-name=c", "--image=ccm:1"])

    assert rbac.CHECKPOINT_NAME in capsys.readouterr().out


def test_controllers_without_work_there_are_not_started() -> None:
    chosen = controllers(["*"], clouds.descriptor("tiny").not_offered)

    assert chosen == ("node", "node-lifecycle", "service")


def load_balancer_service(scheme: str) -> LoadBalancerService:
    settings = {"scheme": scheme}
    return LoadBalancerService(
        "web", {"cloud": "tiny", "selector": {"app": "web"}, "ports": [{"port": 80}], "settings": settings}
    )


def test_the_component_turns_its_typed_settings_into_annotations(run_program: Any) -> None:
    recording = run_program(lambda: load_balancer_service("internal"))

    service = recording.one("kubernetes:core/v1:Service", "web")
    assert service.inputs["metadata"]["annotations"] == {"tiny.example.com/scheme": "internal"}


def test_the_component_refuses_a_setting_that_the_catalogue_does_not_allow(run_program: Any) -> None:
    with pytest.raises(WrongInput, match=r"settings\.scheme"):
        run_program(lambda: load_balancer_service("secret"))


def test_the_components_know_it() -> None:
    assert "tiny" in component_clouds.names()


def fresh(script: str) -> Any:
    """What a new process prints, as JSON: some tables are made when a module is imported."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


VALUES = {
    "cloud": "tiny",
    "clusterName": "c",
    "nodePools": json.dumps([{"name": "cp", "role": "control-plane", "count": 1, "type": "x", "zones": ["here"]}]),
}


@pytest.mark.integration
def test_a_stack_file_has_a_section_for_it() -> None:
    values = {**VALUES, "tiny": json.dumps({"kubeconfig": "there", "machines": {"n1": "10.9.0.1"}})}

    section = fresh(
        "import json; from components.stack_config import parse; from tinycloud.stack_section import TinyConfig;"
        f"print(json.dumps(parse({values!r}).section(TinyConfig).model_dump()))"
    )

    assert section == {"kubeconfig": "there", "machines": {"n1": "10.9.0.1"}}


@pytest.mark.integration
def test_a_wrong_section_is_an_error_that_names_the_key() -> None:
    error = fresh(
        "import json; from components.stack_config import ConfigError, parse\n"
        f"try: parse({ {**VALUES, 'tiny': '{}'}!r})\n"
        "except ConfigError as error: print(json.dumps(str(error)))"
    )

    assert "cloud-controller:tiny.kubeconfig is missing" in error


@pytest.mark.integration
def test_the_schema_of_stack_files_has_its_section() -> None:
    schema = fresh("import json; from components.stack_schema import schema; print(json.dumps(schema()))")

    config = schema["properties"]["config"]["properties"]
    assert "tiny" in config["cloud-controller:cloud"]["enum"]
    assert "cloud-controller:tiny" in config


@pytest.mark.integration
def test_the_policy_pack_has_its_rule_and_knows_its_annotation() -> None:
    names, internal = fresh(
        "import json; from policy.checklist import POLICIES; from policy.checklist.load_balancers import INTERNAL;"
        "print(json.dumps([[p.name for p in POLICIES], [m.name for m in INTERNAL]]))"
    )

    assert "tiny-cluster-has-name" in names
    assert "tiny.example.com/scheme" in internal
