"""A wrong call is one line: what is wrong, the nearest name, where help is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cloud_controller.cli.parser import Parser


def refusal(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the command `tool` says of a wrong call."""
    parser = Parser(prog="tool")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    grow = commands.add_parser("grow")
    grow.add_argument("--speed", choices=("slow", "fast"))
    grow.add_argument("--plant", required=True)
    grow.also = ["--elsewhere"]
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(arguments)
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "tool: error: COMMAND is required; allowed: grow (see tool --help)"),
        (["grw"], "tool: error: unknown command 'grw'; did you mean grow? allowed: grow (see tool --help)"),
        (["--speed", "grow"], "tool: error: unknown option --speed (see tool --help)"),
        (["grow"], "tool grow: error: --plant is required (see tool grow --help)"),
        (["grow", "--plant", "x", "y"], "tool grow: error: unexpected argument 'y' (see tool grow --help)"),
        (
            ["grow", "--plant", "x", "--speed", "fst"],
            "tool grow: error: argument --speed: 'fst'; did you mean fast? allowed: slow, fast (see tool grow --help)",
        ),
        (
            ["grow", "--elsewhre"],
            "tool grow: error: unknown option --elsewhre; did you mean --elsewhere? (see tool grow --help)",
        ),
    ],
)
def test_a_command_line_usage_error_is_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(arguments, capsys) == told


def test_a_misspelt_required_option_is_named_without_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    line = refusal(["grow", "--plnt=hunter2"], capsys)

    assert "unknown option --plnt; did you mean --plant?" in line
    assert "hunter2" not in line
