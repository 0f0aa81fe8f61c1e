"""What mycloud's cloud config holds: an INI file that the daemon reads and the Pulumi program writes.

[Global]
endpoint = http://127.16.0.1:7070
token = …                  # or token-file = /path, which is read again when the token is not accepted any more
cluster-id = c-0123456789ab
network-id = net-0123456789ab      # default: the cluster's network

[LoadBalancer]
scheme = internet-facing   # for Services that do not say
"""

from __future__ import annotations

import configparser
import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.mycloud.annotations import CATALOGUE

_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
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


def parse(text: str) -> Config:
    """Read a cloud config. Raises InvalidConfiguration that names section and key, or the line, and quotes nothing.

    Whatever stands at a wrong place may be the token: where lines were lost, in any value or name.
    """
    parser = configparser.ConfigParser(
        interpolation=None, default_section="", inline_comment_prefixes=("#",), delimiters=("=",)
    )
    try:
        parser.read_string(text)
    except configparser.MissingSectionHeaderError as error:
        raise InvalidConfiguration("cloud config", f"line {error.lineno} is not in a [section]") from None
    except (configparser.DuplicateOptionError, configparser.DuplicateSectionError) as error:
        raise InvalidConfiguration("cloud config", f"line {error.lineno} repeats a section or key") from None
    except configparser.ParsingError as error:
        # The error's own text quotes the line, which may hold the token.
        lines = ", ".join(str(number) for number, _ in error.errors)
        raise InvalidConfiguration("cloud config", f"line {lines} is not of the form 'key = value'") from None
    for section in parser.sections():
        if section not in _KEYS:
            raise _unknown("section", section, _KEYS, _line(text, section))
        for key in parser[section]:
            if key not in _KEYS[section]:
                raise _unknown(f"key in [{section}]", key, _KEYS[section], _line(text, section, key))
    values = {(section, key): value for section in parser.sections() for key, value in parser[section].items()}
    scheme = CATALOGUE.by_argument["scheme"]
    return Config(
        endpoint=_required(values, "endpoint"),
        token=_token(values),
        cluster_id=str(_id("cluster-id", _required(values, "cluster-id"))),
        network_id=_id("network-id", values.get(("Global", "network-id")) or None),
        scheme=_allowed(values, "LoadBalancer", "scheme", scheme.allowed, str(scheme.default)),
        token_file=Path(path) if (path := values.get(("Global", "token-file"))) else None,
    )


def render(config: Config) -> str:
    """The text that `parse` reads back as `config`."""
    lines = [
        "[Global]",
        f"endpoint = {config.endpoint}",
        f"token = {config.token}",
        f"cluster-id = {config.cluster_id}",
        *([f"network-id = {config.network_id}"] if config.network_id else []),
        "",
        "[LoadBalancer]",
        f"scheme = {config.scheme}",
    ]
    return "\n".join(lines) + "\n"


def _token(values: dict[tuple[str, str], str]) -> str:
    token, path = values.get(("Global", "token")), values.get(("Global", "token-file"))
    if token and path:
        raise InvalidConfiguration("cloud config: [Global]", "token and token-file are mutually exclusive")
    if token:
        return token
    if not path:
        raise InvalidConfiguration("cloud config: [Global] token", "missing", "token or token-file")
    return read_token(Path(path))


def read_token(path: Path) -> str:
    """The token in this file. Raises InvalidConfiguration where there is none."""
    try:
        token = path.read_text().strip()
    except (OSError, ValueError) as error:
        # Without the path: a token may stand in its place.
        why = error.strerror if isinstance(error, OSError) else "not a text file"
        raise InvalidConfiguration("cloud config: [Global] token-file", f"could not read the file: {why}") from None
    if not token:
        raise InvalidConfiguration("cloud config: [Global] token-file", "the file is empty")
    return token


def _required(values: dict[tuple[str, str], str], key: str) -> str:
    value = values.get(("Global", key))
    if not value:
        raise InvalidConfiguration(f"cloud config: [Global] {key}", "missing")
    return value


def _allowed(values: dict[tuple[str, str], str], section: str, key: str, allowed: tuple[str, ...], default: str) -> str:
    value = values.get((section, key), default)
    if value not in allowed:
        field_ = f"cloud config: [{section}] {key}"
        raise InvalidConfiguration(field_, "not a valid value", ", ".join(allowed))
    return value


def _id(key: str, value: str | None) -> str | None:
    if value is not None and not _ID.fullmatch(value):
        allowed = "at most 100 letters, digits, '.', '_' and '-'"
        raise InvalidConfiguration(f"cloud config: [Global] {key}", "not a valid ID", allowed)
    return value


def _unknown(what: str, name: str, known: Collection[str], line: int | None) -> InvalidConfiguration:
    nearest = difflib.get_close_matches(name, known, n=1)
    why = f"unknown {what}" + (f"; did you mean {nearest[0]!r}?" if nearest else "")
    return InvalidConfiguration("cloud config" + (f": line {line}" if line else ""), why, ", ".join(known))


def _line(text: str, section: str, key: str | None = None) -> int | None:
    """The number of the line with this section or key, which the parser does not tell."""
    current = None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            current = stripped[1:].rpartition("]")[0]
            if key is None and current == section:
                return number
        elif current == section and stripped.partition("=")[0].strip().lower() == key:
            return number
    return None
