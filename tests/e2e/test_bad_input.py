"""Invalid input gets one clear error and an exit code, and leaves nothing half made."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.pulumi.secrets import open_crypter
from tests.e2e.local_stack import ROOT, LocalStack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

Settings = dict[str, Any]


@pytest.fixture(scope="module")
def stack(empty_stack: LocalStack) -> Iterator[LocalStack]:
    """A site with nothing on it: one preview starts mycloud and writes the stack's copy."""
    empty_stack.run("preview")
    yield empty_stack


def up_with(stack: LocalStack, tmp_path: Path, edit: Callable[[Settings], None]) -> str:
    """A failing `up` with the stack's copy changed by `edit`; returns the whole output.

    The value of mycloudToken is encrypted as `pulumi config set --secret` does it: `{"encrypt": TEXT}`.
    """
    folder = stack.state / "stacks" / "local"
    settings = yaml.safe_load((folder / "Pulumi.local.yaml").read_text())
    edit(settings["config"])
    token = settings["config"]["cloud-controller:mycloudToken"]
    if "encrypt" in token:
        crypter = open_crypter((folder / "passphrase").read_text().strip(), settings["encryptionsalt"])
        settings["config"]["cloud-controller:mycloudToken"] = {"secure": crypter.encrypt(token["encrypt"])}
    changed = tmp_path / "Pulumi.local.yaml"
    changed.write_text(yaml.safe_dump(settings))
    return stack.on_copy("up", config_file=changed, expect=1)


def set_key(key: str, value: Any) -> Callable[[Settings], None]:
    return lambda config: config.__setitem__(f"cloud-controller:{key}", value)


def count_of_workers_is_text(config: Settings) -> None:
    config["cloud-controller:nodePools"][1]["count"] = "many"


def misspelt_key_of_a_pool(config: Settings) -> None:
    pool = config["cloud-controller:nodePools"][1]
    pool["zoness"] = pool.pop("zones")


def unknown_zone(config: Settings) -> None:
    config["cloud-controller:nodePools"][1]["zones"] = ["zone-x"]


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        pytest.param(set_key("cloud", "mycluod"), ["cloud", "mycluod", "mycloud"], id="an unknown cloud"),
        pytest.param(set_key("nodePool", []), ["nodePool", "nodePools"], id="an unknown key"),
        pytest.param(misspelt_key_of_a_pool, ["zoness", "zones"], id="a misspelt key of a pool"),
        pytest.param(count_of_workers_is_text, ["count", "many"], id="a count that is no number"),
        pytest.param(unknown_zone, ["zone-x", "zone-a"], id="a zone that the cloud has not"),
        pytest.param(set_key("mycloudToken", "plain"), ["mycloudToken is in plain text"], id="a token in plain text"),
        pytest.param(set_key("mycloudToken", {"encrypt": "wrong"}), ["token"], id="a wrong token"),
        pytest.param(
            set_key("mycloud", {"endpoint": "http://127.0.0.1:9"}),
            ["http://127.0.0.1:9"],
            id="a cloud that is not there",
        ),
    ],
)
def test_an_invalid_configuration_is_one_error_and_makes_nothing(
    stack: LocalStack, tmp_path: Path, edit: Callable[[Settings], None], told: list[str]
) -> None:
    text = up_with(stack, tmp_path, edit)

    assert [word for word in told if word not in text] == []
    assert "Traceback" not in text
    cloud = stack.cloud
    collections = ("networks", "subnets", "clusters", "machines", "load_balancers")
    assert {c: len(cloud.list(c)) for c in collections} == dict.fromkeys(collections, 0)


def test_an_unknown_stack_is_an_error_that_lists_the_existing_ones(stack: LocalStack) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "local", "preview", "--stack", "lokal", "--state", str(stack.state)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert done.returncode == 2
    assert "lokal" in done.stderr
    assert "local" in done.stderr
