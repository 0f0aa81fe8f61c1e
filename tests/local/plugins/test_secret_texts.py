"""Secret inputs of a resource that appear elsewhere."""

from __future__ import annotations

from local.plugins.secret_texts import hidden, masked
from local.plugins.values import Secret


def test_secrets_that_an_error_quotes_are_masked() -> None:
    inputs = {"a": Secret({"token": "s3cret", "pin": 4711, "n": "x"}), "open": "open"}

    assert masked("got s3cret and 4711, open, x", inputs) == "got [secret] and [secret], open, x"


def test_a_secret_that_is_the_beginning_of_another_leaves_nothing_of_it() -> None:
    assert masked("hunter2-more", {"a": Secret("hunter2"), "b": Secret("hunter2-more")}) == "[secret]"


def test_a_short_secret_is_masked_as_a_whole_word_only_and_a_yes_or_no_never() -> None:
    inputs = {"a": Secret(True), "b": Secret("prod"), "c": Secret(100), "d": Secret("+x?")}

    assert masked("the True value of production is 1000", inputs) == "the True value of production is 1000"
    assert masked('"prod"=100, a+x?b', inputs) == '"[secret]"=[secret], a[secret]b'


def test_a_long_secret_is_masked_within_words_too() -> None:
    assert masked(r'"\nhunter2_", %22hunter2', {"a": Secret("hunter2")}) == r'"\n[secret]_", %22[secret]'


def test_a_secret_of_several_lines_is_masked_however_it_is_written() -> None:
    key = 'BEGIN "é"\nhush\n'

    assert masked(f"got {key}", {"key": Secret(key)}) == "got [secret]"
    assert masked(r'got "BEGIN \"é\"\nhush\n"', {"key": Secret(key)}) == 'got "[secret]"'
    assert masked(f"got {key!r}", {"key": Secret(key)}) == "got '[secret]'"


def test_an_output_with_a_secret_text_in_it_is_secret() -> None:
    outputs = {"arn": 'arn:"hunter2":x', "tags": [{"key": '"hunter2"'}], "size": 1}

    assert hidden(outputs, {"name": Secret('"hunter2"')}) == {
        "arn": Secret(outputs["arn"]),
        "tags": Secret(outputs["tags"]),
        "size": 1,
    }


def test_short_secrets_hide_no_other_output() -> None:
    assert hidden({"arn": "arn:123"}, {"size": Secret("123")}) == {"arn": "arn:123"}
