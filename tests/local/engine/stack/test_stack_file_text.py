"""Changes of a stack file: the new values, and the preserved comments and keys."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from local.engine.stack.stack_file_text import with_config, with_salt, without_config

FILE = """\
# yaml-language-server: $schema=schema.json
config:
  # What it is called.
  shop:name: a  # for people
  # Where.
  shop:zones:
    - one  # the first
    # not this one
  shop:text: |
    two
    lines

  # The last.
  shop:last: true
# The end.
"""


@pytest.mark.parametrize(
    ("key", "value", "changed"),
    [
        ("shop:name", "b", ("shop:name: a  # for people", "shop:name: b  # for people")),
        ("shop:name", "5", ("shop:name: a  # for people", "shop:name: '5'  # for people")),
        ("shop:name", {"secure": "v1"}, ("shop:name: a  # for", "shop:name:\n    secure: v1  # for")),
        ("shop:zones", ["two"], ("\n    - one  # the", "\n  - two  # the")),
        ("shop:text", "x", ("shop:text: |\n    two\n    lines\n", "shop:text: x\n")),
        ("shop:last", "no", ("shop:last: true", "shop:last: 'no'")),
        ("shop:new", "é", ("shop:last: true\n", "shop:last: true\n  shop:new: é\n")),
    ],
)
def test_a_value_is_written_in_place(key: str, value: Any, changed: tuple[str, str]) -> None:
    assert with_config(FILE, key, value) == FILE.replace(*changed)


@pytest.mark.parametrize(
    ("key", "gone"),
    [
        ("shop:name", "  shop:name: a  # for people\n"),
        ("shop:zones", "  shop:zones:\n    - one  # the first\n"),
        ("shop:text", "  shop:text: |\n    two\n    lines\n"),
        ("shop:last", "  shop:last: true\n"),
    ],
)
def test_a_key_is_removed_with_its_lines(key: str, gone: str) -> None:
    assert without_config(FILE, key) == FILE.replace(gone, "")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", "config:\n  k: v\n"),
        ("# A comment.\n", "# A comment.\nconfig:\n  k: v\n"),
        ("encryptionsalt: s", "encryptionsalt: s\nconfig:\n  k: v\n"),
        ("config:\n  # none yet\n", "config:\n  k: v\n  # none yet\n"),
        ("config: {}  # none yet\n", "config:\n  k: v  # none yet\n"),
        ("config: {a: b}\nother: c\n", "config:\n  a: b\n  k: v\nother: c\n"),
        ("config:\n    a: b", "config:\n    a: b\n    k: v"),
    ],
)
def test_a_first_value_creates_the_config_section(text: str, changed: str) -> None:
    assert with_config(text, "k", "v") == changed


def test_a_form_that_cannot_be_edited_in_place_is_rewritten() -> None:
    text = "# Gone.\nconfig:\n  a: &same [x]\n  b: *same\n"

    assert yaml.safe_load(with_config(text, "a", "y"))["config"] == {"a": "y", "b": ["x"]}


FLOW = "{config: {a: 1}, encryptionsalt: 'v1:x', secretsprovider: passphrase}\n"


@pytest.mark.parametrize(
    ("changed", "config"),
    [
        (with_config(FLOW, "a", 2), {"a": 2}),
        (with_config(FLOW, "b", 2), {"a": 1, "b": 2}),
        (without_config(FLOW, "a"), {}),
    ],
)
def test_a_file_in_braces_keeps_what_is_not_its_config(changed: str, config: dict[str, int]) -> None:
    kept = {"encryptionsalt": "v1:x", "secretsprovider": "passphrase"}

    assert yaml.safe_load(changed) == {"config": config, **kept}


def test_a_file_in_braces_gets_a_salt() -> None:
    assert yaml.safe_load(with_salt("{config: {a: b}}\n", "s")) == {"encryptionsalt": "s", "config": {"a": "b"}}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", "encryptionsalt: s\n"),
        ("# A comment.", "# A comment.\nencryptionsalt: s\n"),
        ("# A comment.\nconfig:\n  a: b\n", "# A comment.\nencryptionsalt: s\nconfig:\n  a: b\n"),
    ],
)
def test_the_salt_comes_before_the_config(text: str, changed: str) -> None:
    assert with_salt(text, "s") == changed


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@example({}, "k", {"\x85": "\u2028"})
@given(st.dictionaries(st.text("ab:# -", max_size=4), VALUES, max_size=4), st.text("ab:# -", max_size=4), VALUES)
def test_any_written_value_reads_back_and_can_be_removed(config: dict[str, Any], key: str, value: Any) -> None:
    text = yaml.safe_dump({"config": config}, allow_unicode=True)
    config = yaml.safe_load(text)["config"]  # which has spaces for Unicode's line breaks

    put = with_config(text, key, value)

    assert yaml.safe_load(put)["config"] == {**config, key: value}
    without = {k: v for k, v in config.items() if k != key}
    assert (yaml.safe_load(without_config(put, key)).get("config") or {}) == without
