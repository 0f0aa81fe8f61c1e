"""YAML that people wrote: what is wrong is told by its line, and nothing of the text is."""

from __future__ import annotations

import orjson
import pytest

from cloud_controller import yaml_text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: hunter2: c", "(line 1): a value that contains `: ` needs quotes, or the indentation is wrong"),
        ("a:\n\thunter2: 1", "(line 2): indent with spaces, not tabs"),
        ("a:\n  b: 1\n hunter2: 2", "(line 3): the indentation does not match the lines above"),
        ("a: [1, hunter2\nb: 3", "(line 2): an unclosed bracket, or a missing comma"),
        ('a: "hunter2\n', "(line 2): an unclosed quote"),
        ("a: *hunter2", "(line 1): a value that starts with * needs quotes"),
        ("a: @hunter2", "(line 1): a value that starts with % @ or ` needs quotes"),
        ("hunter2: 1\nb: 2\nhunter2: 3", "(line 3): duplicate key, also in line 1"),
        ("a: [{hunter2: 1, hunter2: 2}]", "(line 1): duplicate key, also in line 1"),
        ("a: !hunter2 x", "(line 1)"),
        ("a: 2024-99-99", ""),
    ],
)
def test_yaml_errors_name_the_line_without_quoting_the_text(text: str, told: str) -> None:
    with pytest.raises(yaml_text.NotYaml) as caught:
        yaml_text.load(text)

    assert str(caught.value) == f"not valid YAML{' ' if told else ''}{told}"


@pytest.mark.parametrize("text", ["a: &x {b: 1}\nc:\n  <<: *x\n  b: 2\n", "a: &x [1]\nb: *x", "", "{a: 1, 1: a}"])
def test_yaml_aliases_and_merged_keys_are_not_duplicate_keys(text: str) -> None:
    yaml_text.load(text)


def test_yaml_aliases_have_the_line_of_their_anchor() -> None:
    doubled = "".join(f"x{n}: &x{n} [*x{n - 1}, *x{n - 1}]\n" for n in range(1, 40))

    lines = yaml_text.lines(f"x0: &x0 {{a: 1}}\n{doubled}")

    assert (lines["x0.a"], lines["x39"], len(lines)) == (1, 40, 2 + 39 * 3)


def test_documents_hold_the_values_that_kubernetes_tools_read() -> None:
    text = "a: 2026-01-01\nb: 12:30\nc: 0x10\nd: yes\ne: 1.5\n1: x\n---\n...\n---\n- {f: ~}\n"
    text += "---\n- [y, N, 'y', yy, 1e3, 1.5E3, -1e-2, 1e, '1e3', 0o17, 08, 1.2.3]\n- {y: 1}\n"

    found = yaml_text.documents(text)

    assert [each.value for each in found] == [
        {"a": "2026-01-01", "b": "12:30", "c": 16, "d": True, "e": 1.5, "1": "x"},
        [{"f": None}],
        [[True, False, "y", "yy", 1000.0, 1500.0, -0.01, "1e", "1e3", 15, 8.0, "1.2.3"], {"true": 1}],
    ]
    assert [(each.line, each.lines) for each in found][1] == (10, {"[0]": 10, "[0].f": 10})


def test_each_of_several_joined_files_may_begin_with_a_byte_order_mark() -> None:
    assert [each.value for each in yaml_text.documents("\ufeffa: 1\n---\n\ufeffa: 2\n")] == [{"a": 1}, {"a": 2}]


def test_json_objects_may_follow_one_another() -> None:
    found = yaml_text.documents('\ufeff\n{"a":\n\t"\\ud83d\\ude00"}\n{"b": [1]} {}')

    assert [(each.value, each.line, each.lines) for each in found] == [
        ({"a": "\N{GRINNING FACE}"}, 2, {"a": 2}),
        ({"b": [1]}, 4, {"b": 4, "b[0]": 4}),
        ({}, 4, {}),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1}\n{"a": 1,\n"a": 2}', "not valid YAML (line 3): duplicate key, also in line 2"),
        ('{"a": 1}\n\n{hunter2', "(line 3): an unclosed bracket"),
        ("a: b\n---\na: 'hunter2", "(line 3): an unclosed quote"),
        ("a: .nan", "a value of type float, which JSON does not have"),
        ("a: !!binary aGk=", "a value of type bytes, which JSON does not have"),
        ("a: &a [*a]", "not valid YAML"),
        ("x0: &x0 [1, 1]\n" + "".join(f"x{n}: &x{n} [*x{n - 1}, *x{n - 1}]\n" for n in range(1, 40)), "more than"),
    ],
)
def test_what_is_no_json_is_an_error_at_its_line(text: str, told: str) -> None:
    with pytest.raises(yaml_text.NotYaml) as caught:
        yaml_text.documents(text)

    assert told in str(caught.value)


def test_mappings_that_are_merged_again_and_again_do_not_multiply() -> None:
    merged = "".join(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}]}}\n" for n in range(1, 40))

    (document,) = yaml_text.documents(f"m0: &m0 {{x: 1, z: 2}}\n{merged}own: {{<<: *m39, z: 3}}\n")

    assert document.value["m39"] == {"x": 1, "z": 2}
    assert document.value["own"] == {"x": 1, "z": 3}


@pytest.mark.parametrize("text", ["a: 18446744073709551616", '{"a": 18446744073709551616}', "a: -9223372036854775809"])
def test_numbers_that_no_request_could_carry_lose_digits_as_with_kubernetes_tools(text: str) -> None:
    (document,) = yaml_text.documents(text)

    assert isinstance(document.value["a"], float)
    orjson.dumps(document.value)


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"\\udfff": 1}', 'a: "\\ud800"'])
def test_half_of_a_surrogate_pair_is_refused_because_no_request_could_carry_it(text: str) -> None:
    with pytest.raises(yaml_text.NotYaml, match="half of a surrogate pair"):
        yaml_text.documents(text)
