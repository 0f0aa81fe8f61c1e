"""Whatever is wrong with a config that holds a secret: one typed error of one line, which shows no secret."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as some

from cloud_controller.cli import commands as cli
from cloud_controller.cli import config_file as cli_config_file
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws import config as aws
from cloud_controller.clouds.mycloud import config as mycloud
from cloud_controller.kube import KubeconfigError
from cloud_controller.kube.config import from_kubeconfig

SECRETS = some.text("JKQXZ0123456789+/_", min_size=12, max_size=24).map("S3".__add__)
"""As tokens look, and no line of code; the end of one may be `==`."""

SHOWN = 8
"""So many characters of a secret in a row are too many."""

MYCLOUD = (
    "[Global]\nendpoint = http://127.0.0.1:7070\ntoken = TOKEN\ncluster-id = c-1\n\n[LoadBalancer]\nscheme = internal\n"
)
AWS = """[Global]
KubernetesClusterID = prod-1
Region = eu-central-1
VPC = vpc-0a
RoleARN = arn:aws:iam::123456789012:role/TOKEN
DisableSecurityGroupIngress = true
SupportedTopologyInstanceTypePattern = ^p5
[ServiceOverride "TOKEN"]
Service = ec2
Region = eu-central-1
URL = http://127.0.0.1:5000
SigningRegion = eu-central-1
"""
KUBECONFIG: dict[str, Any] = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:6443", "tls-server-name": "k8s"}}],
    "users": [
        {
            "name": "u",
            "user": {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "aws",
                    "args": ["get-token", "TOKEN"],
                    "env": [{"name": "A", "value": "TOKEN"}],
                }
            },
        }
    ],
}
OPTIONS = (
    "cloud: mycloud\nsecure-port: 10258\ncontrollers: [node, route]\nnode-monitor-period: 5s\nleader-elect: true\n"
)

_, PARSERS = cli._parsers()
"""Made once: to make them takes longer than to read with them."""


@some.composite
def spoilt(draw: some.DrawFn, text: str) -> tuple[str, str]:
    """The text with a secret in it, after a few accidents: lines joined, pieces lost, the secret in a wrong place."""
    secret = draw(SECRETS) + draw(some.sampled_from(["", "=", "=="]))
    text = text.replace("TOKEN", secret)
    for _ in range(draw(some.integers(1, 3))):
        at = draw(some.integers(0, len(text)))
        to = draw(some.integers(at, min(len(text), at + 30)))
        match draw(some.integers(0, 5)):
            case 0:
                text = text[:at] + secret + text[to:]
            case 1:
                text = text[:at] + text[to:]
            case 2:
                text = text[:at] + text[at:].replace("\n", draw(some.sampled_from([" ", "", "\n\n", "\n "])), 1)
            case 3:
                text = text[:at] + draw(some.text(" =:[]{}\"'#;\\\n\t!&*|-%@\0é", min_size=1, max_size=4)) + text[at:]
            case 4:
                words = [word for word in text.split() if word != secret]
                text = text.replace(draw(some.sampled_from(words)), secret) if words else secret
            case _:
                text = json.dumps({"token": secret, "text": text}) if draw(some.booleans()) else f"{text}\n{secret}\n"
    return text, secret


@some.composite
def misshapen(draw: some.DrawFn, document: Any) -> tuple[str, str]:
    """A document as YAML, in which something is of another type, or is the secret."""
    secret = draw(SECRETS)
    junk = some.sampled_from(
        [
            secret,
            [secret],
            {secret: secret},
            {"name": secret},
            [{"name": "c"}],
            5,
            True,
            1.5,
            None,
            "",
            f"http://{secret}:99999",
        ]
    )

    def changed(value: Any) -> Any:
        if draw(some.integers(0, 6)) == 0:
            return draw(junk)
        if isinstance(value, dict):
            return {(secret if draw(some.integers(0, 30)) == 0 else key): changed(each) for key, each in value.items()}
        if isinstance(value, list):
            return [changed(each) for each in value]
        return secret if value == "TOKEN" else value

    return yaml.safe_dump(changed(document)), secret


def told(read: Callable[[], object], error: type[Exception]) -> str:
    """What is said and logged: of the typed error its one line; "" where nothing is wrong."""
    try:
        read()
    except error as refused:
        assert "\n" not in str(refused)
        return "".join(traceback.format_exception(refused))
    return ""


def assert_not_shown(secret: str, text: str) -> None:
    # Python's traceback quotes lines of code, in which no secret stands.
    pieces = {secret[start : start + SHOWN] for start in range(len(secret) - SHOWN + 1)}
    assert not [piece for piece in pieces if piece in text], text


@given(spoilt(MYCLOUD))
def test_no_cloud_config_of_mycloud_shows_its_token(case: tuple[str, str]) -> None:
    text, secret = case

    assert_not_shown(secret, told(lambda: mycloud.parse(text), InvalidConfiguration))


@given(spoilt(AWS))
def test_no_cloud_config_of_aws_shows_a_value(case: tuple[str, str]) -> None:
    text, secret = case

    assert_not_shown(secret, told(lambda: aws.parse(text), InvalidConfiguration))


@given(spoilt(yaml.safe_dump(KUBECONFIG)) | misshapen(KUBECONFIG))
def test_no_kubeconfig_shows_a_credential(case: tuple[str, str]) -> None:
    text, secret = case

    assert_not_shown(secret, told(lambda: from_kubeconfig(text), KubeconfigError))


@given(spoilt(OPTIONS) | misshapen(yaml.safe_load(OPTIONS)))
def test_no_file_of_options_shows_what_is_no_option(case: tuple[str, str]) -> None:
    text, secret = case

    def read() -> None:
        cli_config_file.values_of("options.yaml", text, PARSERS, "run")

    assert_not_shown(secret, told(read, InvalidConfiguration))
