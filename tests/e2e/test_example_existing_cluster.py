"""The example `existing-cluster`: its program on the cluster that its script makes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from cloud_controller.clouds.mycloud.client import Client
from local.mycloud.site import Site
from tests.e2e.local_stack import answers, eventually
from tests.example_program import ROOT, Example, unpacked_wheels

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(900)]

FOLDER = ROOT / "examples" / "existing-cluster"


def objects(cloud: Client) -> dict[str, dict[str, str]]:
    kinds = ("networks", "subnets", "clusters", "machines", "load_balancers")
    return {kind: {each["id"]: each["state"] for each in cloud.list(kind)} for kind in kinds}


def test_the_example_runs_on_a_cluster_that_it_did_not_make_and_leaves_it_as_it_was(
    state_folder: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = Site(state_folder)
    site.up()
    example = Example(FOLDER, unpacked_wheels(tmp_path_factory), tmp_path / "state")
    example.state.mkdir()
    runpy.run_path(str(FOLDER / "make_cluster.py"))["main"](state_folder, example.stack_file, tmp_path / "kubeconfig")
    example.run("config", "set", "--secret", "kubeconfig", given=(tmp_path / "kubeconfig").read_text())
    example.run("config", "set", "--secret", "mycloudToken", given=(state_folder / "mycloud" / "token").read_text())
    cloud = Client(site.endpoint, site.token)
    before = objects(cloud)

    example.run("up", "--yes")
    url = example.run("stack", "output", "url").strip()
    eventually(lambda: answers(url), f"the pods answer at {url}")
    example.run("preview", "--expect-no-changes")
    example.run("destroy", "--yes")

    assert objects(cloud) == before
