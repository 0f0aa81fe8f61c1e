"""Project and stack files: completed with the declared defaults, or refused with one clear error each.

test_recorded_config.py compares what is accepted with recordings of the CLI.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from local.engine.stack.config import resolve, validate
from local.engine.stack.project import ProjectError, StackFile, load_project, load_stack_file
from local.engine.stack.secrets import PassphraseCrypter
from local.plugins.values import PLACEHOLDER, Secret

CRYPTER = PassphraseCrypter(b"k" * 32, "v1:salt")
SCHEMA: dict[str, Any] = {
    "cloud": {"type": "string"},
    "count": {"type": "integer", "default": 3},
    "zones": {"type": "array", "items": {"type": "string"}, "default": []},
    "region": {"type": "string", "default": "here"},
}


def config_of(
    directory: Path, config: dict[str, Any], schema: dict[str, Any] | None = None, *, secrets: bool = True
) -> Any:
    project = {"name": "shop", "runtime": {"name": "python"}, "stackConfigDir": "stacks", "config": schema or SCHEMA}
    (directory / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    (directory / "stacks").mkdir(exist_ok=True)
    (directory / "stacks" / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": config}))
    loaded = load_project(directory)
    stack_file = load_stack_file(loaded, "dev")
    resolved = resolve(loaded, stack_file, CRYPTER if secrets else None)
    validate(loaded, stack_file, resolved)
    return resolved


def test_config_values_are_passed_as_text_with_the_declared_defaults(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"shop:cloud": "mycloud", "shop:zones": ["a"], "aws:region": "x"})
    assert config.values == {
        "shop:cloud": "mycloud", "shop:zones": '["a"]', "aws:region": "x", "shop:count": "3", "shop:region": "here",
    }  # fmt: skip


def test_secure_values_are_secret(tmp_path: Path) -> None:
    secure = {"secure": CRYPTER.encrypt("hunter2")}
    config = config_of(tmp_path, {"shop:cloud": secure, "shop:zones": ["a"]})
    assert config.values["shop:cloud"] == "hunter2"
    assert config.secret_keys == {"shop:cloud"}
    assert config.masked()["shop:cloud"] == "[secret]" and config.masked()["shop:zones"] == '["a"]'
    assert config.as_properties("shop")["cloud"] == Secret("hunter2")


TOKEN = {"token": {"type": "string", "secret": True}}


@pytest.mark.parametrize("plain", ["hunter2", ["hunter2"]])
def test_a_declared_secret_in_plain_text_is_refused_with_the_command_that_encrypts_it_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProjectError, match=r"'token' must be encrypted as it's secret\n") as caught:
        config_of(tmp_path, {"shop:token": plain}, TOKEN)

    command = "python -m local.engine config set --secret token --stack dev"
    reported = f"  {tmp_path}/stacks/Pulumi.dev.yaml: shop:token is in plain text; encrypt it with `{command}`"
    assert str(caught.value).splitlines()[1:] == [reported]


def test_a_declared_secret_whose_default_is_in_plain_text_is_named_in_the_projects_file(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"/Pulumi\.yaml: shop:token is in plain text; encrypt it with `"):
        config_of(tmp_path, {}, {"token": {"type": "string", "secret": True, "default": "none"}})


def test_the_command_that_encrypts_a_secret_has_the_folder_and_file_that_it_needs(tmp_path: Path) -> None:
    config_of(tmp_path, {"shop:token": {"secure": CRYPTER.encrypt("hunter2")}}, TOKEN)
    project = load_project(tmp_path)
    file = tmp_path / "a copy.yaml"
    stack_file = StackFile("dev", file, {"shop:token": "hunter2"})

    with pytest.raises(ProjectError) as caught:
        validate(project, stack_file, resolve(project, stack_file, None))

    assert str(caught.value).endswith(f"--secret token --stack dev --cwd {tmp_path} --config-file '{file}'`")


def test_a_date_is_the_text_that_the_cli_makes_of_it(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    config = "config: {shop:day: 2026-01-02, shop:at: 2026-01-02T03:04:05+01:00, shop:deep: {day: 2026-01-02}}\n"
    (tmp_path / "Pulumi.dev.yaml").write_text(config)
    project = load_project(tmp_path)
    values = resolve(project, load_stack_file(project, "dev"), None).values
    assert values["shop:day"] == "2026-01-02 00:00:00 +0000 UTC"
    assert values["shop:at"] == "2026-01-02 02:04:05 +0000 UTC"
    assert values["shop:deep"] == '{"day":"2026-01-02"}'


def test_without_a_passphrase_secrets_are_placeholders(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"shop:cloud": "c", "shop:count": {"secure": "v1:not:readable"}}, secrets=False)
    assert config.values["shop:count"] == PLACEHOLDER and "shop:count" in config.secret_keys


def test_a_secret_within_an_object_makes_the_object_secret(tmp_path: Path) -> None:
    nested = {"open": 1, "deep": [{"secure": CRYPTER.encrypt("hunter2")}]}
    config = config_of(tmp_path, {"shop:cloud": "c", "other:thing": nested})
    assert config.values["other:thing"] == '{"deep":["hunter2"],"open":1}' and "other:thing" in config.secret_keys


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "'cloud'\n  FILE does not set it"),
        ({"shop:cloud": "c", "shop:count": "many"}, "'count' must be of type 'integer'\n  FILE has \"many\""),
        ({"shop:cloud": "c", "shop:count": True}, "'count' must be of type 'integer'\n  FILE has \"true\""),
        ({"shop:cloud": "c", "shop:zones": [1]}, "'zones' must be of type 'array<string>'\n  FILE has [1]"),
    ],
)
def test_an_invalid_value_is_named_with_its_file_and_what_is_allowed(
    tmp_path: Path, config: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        config_of(tmp_path, config)
    file = str(tmp_path / "stacks/Pulumi.dev.yaml")
    assert str(caught.value).endswith(message.replace("FILE", file))


def test_an_ill_typed_secret_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        config_of(tmp_path, {"shop:cloud": "c", "shop:count": {"secure": CRYPTER.encrypt("hunter2")}})
    assert "hunter2" not in str(caught.value)


def test_a_number_given_as_text_is_read_by_its_declared_type(tmp_path: Path) -> None:
    assert config_of(tmp_path, {"shop:cloud": "c", "shop:count": "7"}).values["shop:count"] == "7"


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    config_of(tmp_path, {"shop:cloud": "c"})
    project = load_project(tmp_path)
    for name in ("stacks/Pulumi.dev.yaml", "Pulumi.yaml"):
        (tmp_path / name).write_bytes(b"name: \xff\n")

    with pytest.raises(ProjectError, match=r"/stacks/Pulumi\.dev\.yaml is not UTF-8 text$"):
        load_stack_file(project, "dev")
    with pytest.raises(ProjectError, match=r"/Pulumi\.yaml is not UTF-8 text$"):
        load_project(tmp_path)


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").mkdir()

    with pytest.raises(ProjectError, match=r"/Pulumi\.yaml cannot be read: Is a directory$"):
        load_project(tmp_path)


def test_a_stack_without_a_file_is_an_error_that_lists_the_existing_ones(tmp_path: Path) -> None:
    config_of(tmp_path, {"shop:cloud": "c"})
    with pytest.raises(ProjectError, match=r"'prod' has no file .* \(existing stacks: dev\)"):
        load_stack_file(load_project(tmp_path), "prod")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runtime: python\n", "`name` is missing"),
        ("name: x\nruntime: nodejs\n", "'nodejs'"),
        ("name: x\nruntime: [\n", r"Pulumi.yaml is not valid YAML \(line 3\)"),
        ("name: x\nruntime: python\nconfig: {a: {type: float}}\n", "#/config/a/type: value must be one of"),
        (
            "name: x\nruntime: python\nconfig: {a: {type: array, items: {type: float}}}\n",
            "#/config/a/items/type: value",
        ),
        ("name: x\nruntime: python\nconfig: [a]\n", "`config` must be a map"),
    ],
)
def test_a_broken_project_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text(text)
    with pytest.raises(ProjectError, match=message):
        load_project(tmp_path)
