"""mycloud's cloud config: what it may hold, and errors that name section and key but never the token."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from cloud_controller import clouds
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.mycloud.config import Config, parse, render

SECRET = "a-secret-token"
GLOBAL = f"[Global]\nendpoint = http://127.0.0.1:1\ntoken = {SECRET}\ncluster-id = c-1\n"


def test_a_whole_config_is_read() -> None:
    text = f"{GLOBAL}network-id = net-1  # a comment\n\n[LoadBalancer]\nscheme = internal\n"

    assert parse(text) == Config("http://127.0.0.1:1", SECRET, "c-1", "net-1", "internal")


def test_what_is_rendered_reads_back() -> None:
    config = Config("http://127.0.0.1:1", SECRET, "c-1", "net-1", "internal")

    assert parse(render(config)) == config


def test_the_token_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")

    assert parse(GLOBAL.replace(f"token = {SECRET}", f"token-file = {tmp_path}/token")).token == SECRET


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GLOBAL.replace("cluster-id = c-1", ""), r"\[Global\] cluster-id: missing"),
        (GLOBAL.replace("endpoint", "endpont"), r"line 2: unknown key in \[Global\]; did you mean 'endpoint'"),
        (f"{GLOBAL}[LoadBalancers]\n", r"line 5: unknown section; did you mean 'LoadBalancer'"),
        (
            f"{GLOBAL}[LoadBalancer]\nscheme = public\n",
            r"\[LoadBalancer\] scheme: not a valid value \(allowed: internet",
        ),
        (f"{GLOBAL}token-file = /x\n", "are mutually exclusive"),
        (
            GLOBAL.replace(f"token = {SECRET}", "token-file = /nowhere/token"),
            "token-file: could not read the file: No such",
        ),
        (GLOBAL.replace(f"token = {SECRET}", ""), "token: missing"),
        (GLOBAL.replace(f"token = {SECRET}", f"token-file = {SECRET}"), "token-file: could not read the file: No such"),
        (GLOBAL.replace(f"token = {SECRET}", "token"), r"\[Global\] token: has no value"),
        (GLOBAL.replace("\ntoken", " token"), "token: missing"),
        (GLOBAL.replace("\n", " ").replace("[Global] ", "[Global]\n"), "token: missing"),
        (GLOBAL.replace("cluster-id = c-1", f"cluster-id = c-1 token = {SECRET}"), "cluster-id: not a valid ID"),
        ("", "missing"),
    ],
)
def test_a_wrong_config_is_one_error_that_shows_no_secret(text: str, message: str) -> None:
    with pytest.raises(InvalidConfiguration, match=message) as refused:
        parse(text)

    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_mycloud_is_known_by_its_name_and_shows_no_token() -> None:
    cloud = clouds.load("mycloud", GLOBAL)

    assert (cloud.provider_name, cloud.cluster_id) == ("mycloud", "c-1")
    assert SECRET not in repr(cloud)
    assert SECRET not in repr(parse(GLOBAL))
