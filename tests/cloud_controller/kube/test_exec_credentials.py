"""Tokens from a command: asked for when needed, kept while they hold, and told of clearly where there is none."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.kube import Kube, UnauthorizedError
from cloud_controller.kube.config import Connection, from_kubeconfig
from cloud_controller.kube.exec_credentials import ExecToken
from tests.cloud_controller.kube.scripted_server import Answer, ScriptedServer

pytestmark = pytest.mark.integration

V1 = "client.authentication.k8s.io/v1"


def in_minutes(minutes: float) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def command(folder: Path, script: str, **settings: Any) -> ExecToken:
    """A plugin that is this shell script, and counts its calls in a file."""
    plugin = folder / "plugin"
    plugin.write_text(f"#!/bin/sh\necho >> {folder / 'calls'}\n{script}\n")
    plugin.chmod(0o755)
    return ExecToken({"apiVersion": V1, "command": str(plugin), **settings})


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text().splitlines())


def credential(**status: str) -> str:
    return "echo '" + json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}) + "'"


def test_an_exec_plugins_token_is_cached_until_it_expires(tmp_path: Path) -> None:
    token = command(tmp_path, credential(token="the-token", expirationTimestamp=in_minutes(15)))

    assert [token(), token()] == ["the-token", "the-token"]

    assert calls(tmp_path) == 1


def test_an_exec_plugins_token_is_replaced_shortly_before_it_expires(tmp_path: Path) -> None:
    token = command(tmp_path, credential(token="the-token", expirationTimestamp=in_minutes(0.2)))

    token()
    token()

    assert calls(tmp_path) == 2


def test_an_exec_plugins_token_without_expiry_is_cached_until_the_server_refuses_it(
    tmp_path: Path, server: ScriptedServer
) -> None:
    token = command(tmp_path, credential(token="the-token"))
    kube = Kube(Connection("http", "127.0.0.1", server.port, None, token))
    server.script(Answer({}), Answer({}), Answer({"message": "expired"}, 401), Answer({}))

    kube.version()
    kube.version()
    assert calls(tmp_path) == 1
    with pytest.raises(UnauthorizedError):
        kube.version()
    kube.version()

    assert calls(tmp_path) == 2


def test_an_exec_plugins_token_stays_if_the_server_refused_an_earlier_one(tmp_path: Path) -> None:
    token = command(tmp_path, credential(token="the-token"))
    token()

    token.forget("an-earlier-token")

    token()
    assert calls(tmp_path) == 1


def test_an_exec_plugin_gets_its_arguments_environment_and_exec_info(tmp_path: Path) -> None:
    given = [{"name": "AWS_REGION", "value": "eu-central-1"}]
    script = f'echo "$1 $AWS_REGION $KUBERNETES_EXEC_INFO" > {tmp_path}/given\n{credential(token="t-o-k-e-n")}'

    command(tmp_path, script, args=["get-token"], env=given)()

    argument, region, info = (tmp_path / "given").read_text().split(" ", 2)
    assert (argument, region) == ("get-token", "eu-central-1")
    assert json.loads(info) == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}


def test_an_exec_plugin_with_a_relative_path_is_beside_the_kubeconfig(tmp_path: Path) -> None:
    command(tmp_path, credential(token="the-token"))
    kubeconfig = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": {"apiVersion": V1, "command": "./plugin"}}}],
    }

    token = from_kubeconfig(json.dumps(kubeconfig), directory=tmp_path).token

    assert token is not None
    assert token() == "the-token"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo no credentials >&2; exit 255", "exited with 255: no credentials"),
        ("exit 1", "exited with 1: no output"),
        ("echo secret-token", "not an ExecCredential with a token"),
        ("""echo '{"status": {"clientKeyData": "secret-token"}}'""", "not an ExecCredential with a token"),
        (credential(token="secret-token", expirationTimestamp="soon"), "not an ExecCredential with a token"),
        (
            credential(token="secret-token", expirationTimestamp="2999-01-01T00:00:00"),
            "not an ExecCredential with a token",
        ),
    ],
)
def test_an_exec_plugin_without_a_token_is_an_error_that_quotes_no_secret(
    tmp_path: Path, script: str, why: str
) -> None:
    with pytest.raises(UnauthorizedError, match=why) as raised:
        command(tmp_path, script)()

    assert "secret-token" not in str(raised.value)


def test_an_exec_plugins_error_is_shown_without_the_values_of_its_settings(tmp_path: Path) -> None:
    given = [{"name": "PASSWORD", "value": "secret-token"}]

    with pytest.raises(UnauthorizedError, match=r"wrong: \[redacted\] \[redacted\]") as raised:
        command(tmp_path, 'echo "wrong: $PASSWORD $1" >&2; exit 1', args=["--key=secret-key"], env=given)()

    assert not [secret for secret in ("secret-token", "secret-key") if secret in str(raised.value)]


def test_a_missing_exec_plugin_is_an_error_with_its_install_hint() -> None:
    token = ExecToken({"apiVersion": V1, "command": "no-such-plugin", "installHint": "Install it."})

    with pytest.raises(UnauthorizedError, match=r"`no-such-plugin`.*command not found; Install it\."):
        token()
