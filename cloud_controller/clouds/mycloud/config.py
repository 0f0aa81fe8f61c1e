"""What mycloud's cloud config holds: a gcfg file that the daemon reads and the Pulumi program writes.

[Global]
endpoint = http://127.16.0.1:7070
token = …                  # or token-file = /path, which is read again when the token is not accepted any more
cluster-id = c-0123456789ab
network-id = net-0123456789ab      # default: the cluster's network

[LoadBalancer]
scheme = internet-facing   # for Services that do not say

A value that contains `#`, `;`, `"` or a backslash needs quotes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cloud_controller.clouds.common.gcfg import Section, read, written, wrong
from cloud_controller.clouds.mycloud.annotations import CATALOGUE

_KEYS = {
    "Global": ("endpoint", "token", "token-file", "cluster-id", "network-id"),
    "LoadBalancer": ("scheme",),
}


@dataclass(frozen=True, slots=True)
class Config:
    """A cloud config, checked. `network_id` None: the network of the cluster."""

    endpoint: str
    token: str = field(repr=False)
    cluster_id: str
    network_id: str | None = None
    scheme: str = "internet-facing"
    token_file: Path | None = None
    """Where `token` was read, to be read again once the cloud does not accept it any more."""


def parse(text: str, token_of: Callable[[Path], str] | None = None) -> Config:
    """Read a cloud config. Raises InvalidConfiguration that names section and key, or the line, and no value.

    `token_of`: what reads the file of `token-file`, by default `read_token`.
    """
    sections = read(text, _KEYS)
    (one,), (balancers,) = sections["Global"], sections["LoadBalancer"]
    scheme = CATALOGUE.by_argument["scheme"]
    path = one.text("token-file")
    return Config(
        endpoint=one.required("endpoint"),
        token=_token(one, token_of or read_token),
        cluster_id=_id(one, "cluster-id") or one.required("cluster-id"),
        network_id=_id(one, "network-id"),
        scheme=balancers.one_of("scheme", scheme.allowed, str(scheme.default)),
        token_file=Path(path) if path else None,
    )


def render(config: Config) -> str:
    """The text that `parse` reads back as `config`."""
    lines = [
        "[Global]",
        f"endpoint = {written(config.endpoint)}",
        f"token = {written(config.token)}",
        f"cluster-id = {config.cluster_id}",
        *([f"network-id = {config.network_id}"] if config.network_id else []),
        "",
        "[LoadBalancer]",
        f"scheme = {config.scheme}",
    ]
    return "\n".join(lines) + "\n"


def _token(one: Section, token_of: Callable[[Path], str]) -> str:
    token, path = one.text("token"), one.text("token-file")
    if token and path:
        raise wrong(one.shown, "token and token-file are mutually exclusive")
    if token:
        return token
    if not path:
        raise one.wrong("token", "missing", "token or token-file")
    return token_of(Path(path))


def read_token(path: Path) -> str:
    """The token in this file. Raises InvalidConfiguration where there is none."""
    try:
        token = path.read_text().strip()
    except (OSError, ValueError) as error:
        # Without the path: a token may stand in its place.
        why = error.strerror if isinstance(error, OSError) else "not a text file"
        raise wrong("[Global] token-file", f"could not read the file: {why}") from None
    if not token:
        raise wrong("[Global] token-file", "the file is empty")
    return token


def _id(one: Section, key: str) -> str | None:
    allowed = "at most 100 letters, digits, '.', '_' and '-'"
    return one.matching(key, r"[A-Za-z0-9._-]{1,100}", "not a valid ID", allowed)
