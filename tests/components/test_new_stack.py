"""`make new-stack`: a commented stack file that is right as it is, and never one that was there before."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
import yaml

from components.existing_config import ExistingConfig
from components.stack_config import MODEL, SECRET_KEYS, NodePoolConfig, parse

ROOT = Path(__file__).parents[2]
SITE = {"mycloud": '{"endpoint": "http://127.0.0.1:7070"}', "mycloudToken": "t"}
"""What the site sets in its copy."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of a checkout as the tool needs."""
    shutil.copytree(ROOT / "stacks", tmp_path / "stacks")
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "new-stack", tmp_path / "tools")
    return tmp_path


def new_stack(checkout: Path, *name: str) -> subprocess.CompletedProcess[str]:
    command = [str(checkout / "tools" / "new-stack"), *name]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def config_of(text: str) -> dict[str, object]:
    # A section is null whose keys are all comments.
    return {key: value for key, value in yaml.safe_load(text)["config"].items() if value is not None}


def texts(config: dict[str, object]) -> Iterator[tuple[str, str]]:
    """As Pulumi hands config to a program."""
    for key, value in config.items():
        yield key.removeprefix("cloud-controller:"), value if isinstance(value, str) else json.dumps(value)


@pytest.mark.integration
def test_a_new_stack_file_is_valid_unedited(checkout: Path) -> None:
    made = new_stack(checkout, "staging")

    text = (checkout / "stacks" / "Pulumi.staging.yaml").read_text()
    assert made.returncode == 0 and "make preview STACK=staging" in made.stdout
    assert parse(dict(texts(config_of(text))) | SITE, SECRET_KEYS).cluster_name == "staging"
    jsonschema.validate(yaml.safe_load(text), json.loads((ROOT / "stacks" / "schema.json").read_text()))


@pytest.mark.integration
def test_a_new_stack_file_for_an_existing_cluster_is_valid_once_it_has_the_kubeconfig(checkout: Path) -> None:
    made = new_stack(checkout, "shop", "existing")

    file = yaml.safe_load((checkout / "stacks" / "Pulumi.shop.yaml").read_text())
    kubeconfig = '{"clusters": [1], "contexts": [1], "users": [1]}'
    config = parse(dict(texts(file["config"])) | SITE | {"kubeconfig": kubeconfig}, SECRET_KEYS)
    assert made.returncode == 0
    assert (config.cluster, config.cluster_name) == ("existing", "shop")
    file["config"]["cloud-controller:kubeconfig"] = {"secure": "v1:…"}
    jsonschema.validate(file, json.loads((ROOT / "stacks" / "schema.json").read_text()))


@pytest.mark.integration
def test_a_stack_of_an_unknown_kind_is_refused(checkout: Path) -> None:
    refused = new_stack(checkout, "shop", "old")

    assert (refused.returncode, "allowed: new, existing" in refused.stderr) == (2, True)


def test_the_defaults_that_the_template_shows_are_the_defaults() -> None:
    text = (ROOT / "stacks" / "template.yaml").read_text().replace("NAME", "x")
    shown = re.sub(r"^(\s*)# (?=\s*(?:cloud-controller:|[a-z-]+: (?:daemon|\{\})))", r"\1", text, flags=re.MULTILINE)

    spoken, silent = (parse(dict(texts(config_of(each))) | SITE, SECRET_KEYS) for each in (shown, text))

    assert shown != text
    assert spoken.model_copy(update={"executors": {}}) == silent
    assert {spoken.executor(c) for c in spoken.executors} == {silent.executor(c) for c in spoken.executors}


def test_the_template_names_every_key() -> None:
    text = (ROOT / "stacks" / "template.yaml").read_text()
    keys = [str(f.alias) for model in (MODEL, NodePoolConfig) for f in model.model_fields.values()]

    assert [key for key in keys if key not in text] == []


def test_the_template_for_an_existing_cluster_names_every_key_of_one() -> None:
    text = (ROOT / "stacks" / "template-existing.yaml").read_text()

    assert [str(f.alias) for f in ExistingConfig.model_fields.values() if f"{f.alias}:" not in text] == []


@pytest.mark.integration
def test_an_existing_stack_file_is_not_touched(checkout: Path) -> None:
    before = (checkout / "stacks" / "Pulumi.local.yaml").read_text()

    refused = new_stack(checkout, "local")

    assert (refused.returncode, "already exists" in refused.stderr) == (2, True)
    assert (checkout / "stacks" / "Pulumi.local.yaml").read_text() == before


@pytest.mark.integration
@pytest.mark.parametrize("name", ["", "Staging", "a_b", "-a", "a/../b", "x" * 41])
def test_an_invalid_stack_name_is_refused(checkout: Path, name: str) -> None:
    refused = new_stack(checkout, name)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert {p.name for p in (checkout / "stacks").iterdir()} == {p.name for p in (ROOT / "stacks").iterdir()}


def test_every_stack_file_fits_the_schema() -> None:
    schema = json.loads((ROOT / "stacks" / "schema.json").read_text())
    files = sorted((ROOT / "stacks").glob("Pulumi.*.yaml"))

    assert len(files) >= 1
    for file in files:
        jsonschema.validate(yaml.safe_load(file.read_text()), schema)
