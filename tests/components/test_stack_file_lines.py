"""What is wrong with a stack's config is told with its place in the stack's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from components.stack_file_lines import with_lines

FILE = """\
config:
  cloud-controller:cloud: gcp
  clusterName: c
  cloud-controller:nodePools:
    - name: workers
      count: many
  cloud-controller:mycloudToken: {secure: v1:abc}
"""
VALUES = {
    "cloud": "gcp",
    "clusterName": "c",
    "nodePools": json.dumps([{"count": "many", "name": "workers"}]),
    "mycloudToken": "hunter2",
}


@pytest.mark.parametrize(
    ("about", "line"),
    [
        ('cloud is "gcp": allowed: alicloud, aws, mycloud', 2),
        ('clusterName is "c": too short', 3),
        ('nodePools[0].count is "many": allowed: a whole number', 6),
        ("nodePools[0].type is missing: the cloud's machine type", 5),
        ("nodePools[0].labels[x/y].z is not a known key", 5),
    ],
)
def test_an_error_names_its_line_of_the_stack_file(tmp_path: Path, about: str, line: int) -> None:
    (file := tmp_path / "Pulumi.dev.yaml").write_text(FILE)

    told = with_lines(f"cloud-controller:{about}", VALUES, file)

    assert told == f"cloud-controller:{about} ({file}:{line})"


@pytest.mark.parametrize("about", ["zone is missing", "mycloudToken is [secret]: allowed: text", "something else"])
def test_a_key_that_is_not_in_the_file_has_no_line(tmp_path: Path, about: str) -> None:
    (file := tmp_path / "Pulumi.dev.yaml").write_text(FILE)

    assert with_lines(f"cloud-controller:{about}", VALUES, file) == f"cloud-controller:{about}"


@pytest.mark.parametrize("about", ['cloud is "gcp": allowed: aws', "cloud.a]b is not a known key"])
def test_a_value_that_a_yaml_merge_brings_has_no_line(tmp_path: Path, about: str) -> None:
    (file := tmp_path / "Pulumi.dev.yaml").write_text("base: &base\n  cloud: gcp\nconfig:\n  <<: *base\n")

    assert with_lines(f"cloud-controller:{about}", VALUES, file) == f"cloud-controller:{about}"


def test_a_value_that_a_yaml_merge_brings_into_a_list_has_the_line_of_its_element(tmp_path: Path) -> None:
    text = "pool: &pool {count: many}\nconfig:\n  nodePools:\n    - name: workers\n      <<: *pool\n"
    (file := tmp_path / "Pulumi.dev.yaml").write_text(text)
    about = 'cloud-controller:nodePools[0].count is "many": allowed: a whole number'

    assert with_lines(about, VALUES, file) == f"{about} ({file}:4)"


def test_a_name_with_brackets_leads_to_the_line_of_what_holds_it(tmp_path: Path) -> None:
    (file := tmp_path / "Pulumi.dev.yaml").write_text(FILE)
    about = "cloud-controller:nodePools[0].a]b is not a known key"

    assert with_lines(about, VALUES, file) == f"{about} ({file}:5)"


def test_a_value_of_another_file_has_no_line(tmp_path: Path) -> None:
    (file := tmp_path / "Pulumi.dev.yaml").write_text(FILE)

    assert "dev" not in with_lines('cloud-controller:cloud is "x": no', {"cloud": "x"}, file)


@pytest.mark.parametrize("text", [None, "a: [", "- a list", "config: []"])
def test_an_unreadable_file_leaves_the_message_as_it_is(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    if text is not None:
        file.write_text(text)

    assert with_lines("cloud-controller:cloud is 1: no", VALUES, file) == "cloud-controller:cloud is 1: no"
