"""What holds for the descriptor of every cloud."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cloud_controller import clouds
from cloud_controller.cli.commands import main
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controller_names import NAMES, not_offered
from cloud_controller.load_balancers.operations import Remembering
from tests.cloud_controller.cloud_configs import CONFIGS

HEAVY = ("boto3", "botocore", "urllib3", "prometheus_client")


@pytest.mark.parametrize("name", clouds.names())
def test_a_cloud_has_tests_that_compare_its_rights_with_its_calls(name: str) -> None:
    assert (Path(__file__).parent / name / "test_permissions.py").exists()


@pytest.mark.parametrize("name", clouds.names())
def test_a_descriptor_describes_the_cloud_that_it_makes(name: str) -> None:
    descriptor = clouds.descriptor(name)

    cloud = descriptor.from_config(CONFIGS[name])

    assert descriptor.name == descriptor.catalogue.cloud == name
    assert cloud.provider_name == descriptor.provider_id_scheme
    assert cloud.load_balancer_classes >= descriptor.load_balancer_classes
    assert not_offered(cloud) == descriptor.not_offered.keys()
    assert isinstance(cloud.load_balancers, Remembering) == descriptor.keeps_checkpoint


@pytest.mark.parametrize("name", clouds.names())
def test_the_classes_and_annotations_of_readiness_gates_are_the_clouds_own(name: str) -> None:
    descriptor = clouds.descriptor(name)
    gates = descriptor.readiness_gates

    # The cloud config may add classes that the catalogue names.
    known = {each for kind in descriptor.catalogue.kinds for each in kind.classes}
    assert gates.classes <= descriptor.load_balancer_classes | known | {None}
    for annotation in gates.annotations:
        entry = descriptor.catalogue.entry(annotation)
        assert entry is not None and entry.type is bool


@pytest.mark.parametrize("controller", NAMES)
@pytest.mark.parametrize("name", clouds.names())
def test_a_controller_needs_rights_where_the_cloud_has_work_for_it(name: str, controller: str) -> None:
    descriptor = clouds.descriptor(name)

    if controller not in descriptor.not_offered:
        assert descriptor.rights([controller])


@pytest.mark.integration
@pytest.mark.parametrize("name", clouds.names())
def test_loading_a_descriptor_imports_no_client(name: str) -> None:
    script = f"import sys; from cloud_controller import clouds; clouds.descriptor({name!r}); print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert not {*HEAVY} & {*loaded}


def test_an_unknown_cloud_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidConfiguration, match="did you mean 'mycloud'"):
        clouds.load("mycluod", "")


def test_a_cloud_whose_package_is_broken_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[cloud_controller.clouds]\nbroken = no_such_module_anywhere:CLOUD\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert main(["manifests", "--cloud=broken", "--image=x"]) == 1

    [line] = capsys.readouterr().err.splitlines()
    assert (
        "cloud: entry point 'broken' of cloud_controller.clouds (no_such_module_anywhere:CLOUD) cannot be loaded"
        in line
    )
