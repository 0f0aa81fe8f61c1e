"""The descriptors of clouds on one machine: names, what they load, and which stacks have a site."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.registry import Registry
from local.clouds import CLOUDS, LocalCloud, default_cloud
from local.errors import SiteError
from local.stack_file import StackFileError, is_recorded, read_stack_file


def test_each_cloud_has_the_name_of_its_entry_point() -> None:
    assert [cloud.name for cloud in CLOUDS.all()] == CLOUDS.names()


def test_one_cloud_is_the_default() -> None:
    assert [cloud for cloud in CLOUDS.all() if cloud.is_default] == [default_cloud()]


@pytest.mark.integration
def test_descriptors_load_no_sdk_and_no_server() -> None:
    heavy = "('boto3', 'botocore', 'moto', 'fastapi', 'pulumi', 'urllib3')"
    code = f"import sys; from local.clouds import CLOUDS; CLOUDS.all(); print([m for m in {heavy} if m in sys.modules])"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("section", "served"),
    [
        ({"simulated": True}, True),
        ({"simulated": "true"}, False),
        ({"simulated": 1}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_site_serves_the_stacks_whose_section_has_what_it_requires(section: Any, served: bool) -> None:
    def no_site(*_: object) -> Any:
        raise AssertionError

    assert LocalCloud(name="nimbus", site=no_site, requires={"simulated": True}).serves(section) is served


def test_a_stack_of_a_cloud_without_a_local_site_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "Pulumi.x.yaml").write_text("config:\n  cloud: mycloud\n")
    monkeypatch.setattr("local.stack_file.CLOUDS", Registry("local.clouds.none", LocalCloud))

    assert is_recorded(file)
    with pytest.raises(StackFileError, match="there is no local site for cloud 'mycloud'; run the stack with"):
        read_stack_file(file)


def test_a_cloud_that_nothing_stands_in_for_has_no_site() -> None:
    cloud = LocalCloud(name="nimbus")

    assert not cloud.serves({})
    with pytest.raises(SiteError, match="there is no local site for cloud 'nimbus'"):
        cloud.site_of(Path(), "prod", {})


def test_a_stack_without_what_its_clouds_site_requires_is_told_what_that_is(tmp_path: Path) -> None:
    (file := tmp_path / "Pulumi.x.yaml").write_text("config:\n  cloud: aws\n  aws: {}\n")

    with pytest.raises(StackFileError, match=r'a local site needs \{"simulated": true\} in cloud-controller:aws'):
        read_stack_file(file)
