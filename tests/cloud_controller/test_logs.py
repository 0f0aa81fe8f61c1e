"""What a line of the log holds, and what it never holds."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from cloud_controller import logs
from cloud_controller.kube import Kube

SECRET = "s3cr3t-of-test-logs"


@pytest.fixture(autouse=True)
def root_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_text_line_has_time_level_logger_and_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info")

    logging.getLogger("x.y").info("done controller=%s took=%.1f", "node", 1.25)

    time, rest = capsys.readouterr().err.split(" ", 1)
    assert rest == "INFO x.y done controller=node took=1.2\n"
    assert time.endswith("Z")


def test_a_json_line_has_each_pair_as_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")

    logging.getLogger("x.y").warning("pass of %s failed at 100%% error=%r tries=%d", "node", "it is: gone", 3)

    line = json.loads(capsys.readouterr().err)
    assert line.pop("ts").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "x.y",
        "msg": "pass of node failed at 100%",
        "error": "it is: gone",
        "tries": 3,
    }


def test_the_unit_of_a_pair_stays_with_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")

    logging.getLogger("x").warning("pass failed controller=%s retry_in=%.1fs error=%r", "node", 2.0, "no answer")

    line = json.loads(capsys.readouterr().err)
    assert line["msg"] == "pass failed"
    assert (line["controller"], line["retry_in"], line["error"]) == ("node", "2.0s", "no answer")


def test_a_pair_never_takes_the_place_of_a_lines_own_fields(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")

    logging.getLogger("x").info("odd level=%s", "high")

    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["level_"]) == ("info", "high")


def test_a_json_line_of_an_error_holds_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")

    try:
        raise KeyError("a bug")
    except KeyError:
        logging.getLogger("x").critical("thread died thread=%s", "t", exc_info=sys.exc_info())

    assert "KeyError: 'a bug'" in json.loads(capsys.readouterr().err)["exception"]


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_secret_is_never_shown(style: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs.hide(SECRET)
    logs.configure("debug", style)  # type: ignore[arg-type]

    try:
        raise ValueError(f"bad header {SECRET}")
    except ValueError:
        logging.getLogger("x").exception("sent %s header=%s", SECRET, SECRET)
    logging.getLogger("x").info("asked with Authorization: Bearer abcdef0123456789")

    err = capsys.readouterr().err
    assert SECRET not in err
    assert "abcdef0123456789" not in err
    assert err.count("[redacted]") >= 3


def test_a_token_of_a_kubeconfig_is_hidden_as_soon_as_it_is_read() -> None:
    Kube.from_kubeconfig(
        """
        current-context: c
        contexts: [{name: c, context: {cluster: c, user: u}}]
        clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
        users: [{name: u, user: {token: a-token-of-a-kubeconfig}}]
        """
    )

    assert logs.redacted("sent a-token-of-a-kubeconfig") == "sent [redacted]"


def test_log_text_that_only_mentions_tokens_is_not_redacted() -> None:
    text = "the token has expired; token-file /etc/token"

    assert logs.redacted(text) == text
