"""A cloud of another distribution joins every layer by its entry points alone."""

from __future__ import annotations

import pytest

from cloud_controller import clouds, rbac
from cloud_controller.cli import annotation_docs
from cloud_controller.cli.commands import main
from cloud_controller.controller_names import controllers

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
