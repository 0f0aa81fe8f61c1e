"""Project and stack files: completed by the schema, and refused with one clear error each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from local.engine.stack.project import PLACEHOLDER, ProjectError, load_project, load_stack_file, resolve
from local.engine.stack.secrets import PassphraseCrypter
from local.engine.values import Secret

CRYPTER = PassphraseCrypter(b"k" * 32, "v1:salt")
SCHEMA: dict[str, Any] = {
    "cloud": {"type": "string"},
    "count": {"type": "integer", "default": 3},
    "zones": {"type": "array", "items": {"type": "string"}, "default": []},
    "token": {"type": "string", "secret": True, "default": "none"},
}


def config_of(
    directory: Path, config: dict[str, Any], schema: dict[str, Any] | None = None, *, secrets: bool = True
) -> Any:
    project = {"name": "shop", "runtime": {"name": "python"}, "stackConfigDir": "stacks", "config": schema or SCHEMA}
    (directory / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    (directory / "stacks").mkdir(exist_ok=True)
    (directory / "stacks" / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": config}))
    loaded = load_project(directory)
    return resolve(loaded, load_stack_file(loaded, "dev"), CRYPTER if secrets else None)


def test_values_go_as_text_and_the_schemas_defaults_fill_in(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"shop:cloud": "mycloud", "shop:zones": ["a"], "aws:region": "x"})
    assert config.values == {
        "shop:cloud": "mycloud", "shop:zones": '["a"]', "aws:region": "x", "shop:count": "3", "shop:token": "none",
    }  # fmt: skip


def test_secure_values_and_those_the_schema_calls_secret_are_secret(tmp_path: Path) -> None:
    secure = {"secure": CRYPTER.encrypt("hunter2")}
    config = config_of(tmp_path, {"shop:cloud": secure, "shop:zones": ["a"]})
    assert config.values["shop:cloud"] == "hunter2"
    assert config.secret_keys == {"shop:cloud", "shop:token"}
    assert config.masked()["shop:cloud"] == "[secret]" and config.masked()["shop:zones"] == '["a"]'
    assert config.as_properties()["shop:token"] == Secret("none")
    assert config.as_properties("shop")["cloud"] == Secret("hunter2")


@pytest.mark.parametrize("plain", ["hunter2", ["hunter2"]])
def test_what_the_schema_calls_secret_may_not_stand_there_in_plain_and_is_not_shown(tmp_path: Path, plain: Any) -> None:
    """As with the CLI: a file that ours took would be refused there."""
    with pytest.raises(ProjectError, match=r"shop:token must be encrypted") as caught:
        config_of(tmp_path, {"shop:cloud": "c", "shop:token": plain})

    assert "hunter2" not in str(caught.value)


def test_a_date_is_the_text_that_stands_there(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {shop:day: 2026-01-02, shop:deep: {day: 2026-01-02}}\n")
    project = load_project(tmp_path)
    values = resolve(project, load_stack_file(project, "dev"), None).values
    assert values == {"shop:day": "2026-01-02", "shop:deep": '{"day":"2026-01-02"}'}


def test_without_a_passphrase_secrets_are_placeholders(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"shop:cloud": "c", "shop:token": {"secure": "v1:not:readable"}}, secrets=False)
    assert config.values["shop:token"] == PLACEHOLDER and "shop:token" in config.secret_keys


def test_a_secret_within_an_object_makes_the_object_secret(tmp_path: Path) -> None:
    nested = {"open": 1, "deep": [{"secure": CRYPTER.encrypt("hunter2")}]}
    config = config_of(tmp_path, {"shop:cloud": "c", "other:thing": nested})
    assert config.values["other:thing"] == '{"deep":["hunter2"],"open":1}' and "other:thing" in config.secret_keys


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"shop:cloud": "c", "shop:cont": 3}, "unknown config key 'shop:cont'; did you mean 'shop:count'?"),
        ({"shop:cloud": "c", "shop:xyzzy": 3}, "unknown config key 'shop:xyzzy'; known: shop:cloud"),
        ({}, "shop:cloud is not set; it has no default (type string)"),
        ({"shop:cloud": "c", "shop:count": "many"}, 'shop:count is "many", but must be of type integer'),
        ({"shop:cloud": "c", "shop:count": True}, "shop:count is true, but must be of type integer"),
        ({"shop:cloud": "c", "shop:zones": [1]}, "shop:zones is [1], but must be of type array of string"),
    ],
)
def test_a_wrong_key_or_value_is_named_with_what_is_allowed(
    tmp_path: Path, config: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        config_of(tmp_path, config)
    assert message in str(caught.value) and "Pulumi.dev.yaml" in str(caught.value)


def test_an_ill_typed_secret_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        config_of(tmp_path, {"shop:cloud": "c", "shop:count": {"secure": CRYPTER.encrypt("hunter2")}})
    assert "hunter2" not in str(caught.value)


def test_a_number_given_as_text_is_read_as_the_schema_says(tmp_path: Path) -> None:
    assert config_of(tmp_path, {"shop:cloud": "c", "shop:count": "7"}).values["shop:count"] == "7"


def test_a_stack_without_a_file_is_told_which_there_are(tmp_path: Path) -> None:
    config_of(tmp_path, {"shop:cloud": "c"})
    with pytest.raises(ProjectError, match=r"'prod' has no file .*; there are: dev"):
        load_stack_file(load_project(tmp_path), "prod")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runtime: python\n", "`name` is missing"),
        ("name: x\nruntime: nodejs\n", "'nodejs'"),
        ("name: x\nruntime: [\n", r"not valid YAML \(line 3\)"),
        ("name: x\nruntime: python\nconfig: {a: {type: float}}\n", "'float'"),
        ("name: x\nruntime: python\nconfig: {a: {type: array, items: {type: float}}}\n", "items of type 'float'"),
        ("name: x\nruntime: python\nconfig: [a]\n", "`config` must be a map"),
    ],
)
def test_a_broken_project_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text(text)
    with pytest.raises(ProjectError, match=message):
        load_project(tmp_path)
