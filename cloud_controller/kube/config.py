"""Loads kubeconfig files and service accounts into a `Connection`: server, TLS and credentials."""

from __future__ import annotations

import base64
import binascii
import logging
import os
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cloud_controller import logs, yaml_text
from cloud_controller.kube import pem
from cloud_controller.kube.exec_credentials import ExecToken

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SERVICE_ACCOUNT_DIR_VARIABLE = "KUBERNETES_SERVICE_ACCOUNT_DIR"
_TOKEN_LIFETIME = 60.0
"""Seconds for which a token file's content is cached. The kubelet rotates tokens long before they expire."""

_log = logging.getLogger(__name__)

TokenSource = Callable[[], str]


class KubeconfigError(ValueError):
    """A kubeconfig or service-account directory is not usable; the message names the field or file."""


@dataclass(frozen=True)
class Connection:
    """A server and its credentials; secrets stay inside the TLS context and the token source."""

    scheme: str
    host: str
    port: int
    tls: ssl.SSLContext | None = field(repr=False)
    token: TokenSource | None = field(repr=False)
    server_name: str | None = None
    namespace: str = "default"
    """Of objects that name none."""
    certificate: bytes | None = field(default=None, repr=False)
    """The client's certificate, PEM, where it is used."""
    path: str = ""
    """Below which the API is: where one server has those of several clusters, the root may be another cluster's."""

    @property
    def server(self) -> str:
        """The server's URL."""
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}{self.path}"


def from_kubeconfig(text: str, *, context: str | None = None, directory: Path | None = None) -> Connection:
    """The connection of a kubeconfig's context (default: its current-context).

    `directory`: the base of relative file names. Raises `KubeconfigError`, which names the field but never quotes the
    file: a credential may have ended up in the wrong field.
    """
    try:
        document = yaml_text.load(text)
    except yaml_text.NotYaml as error:
        raise KubeconfigError(f"the kubeconfig is {error}") from None
    if not isinstance(document, dict):
        raise KubeconfigError("the kubeconfig is empty or not a mapping")
    context_name = context or document.get("current-context")
    if not context_name:
        raise KubeconfigError("the kubeconfig has no current-context; select a context")
    of_context = f"the name {context!r}" if context else "the name in current-context"
    chosen = _named(document, "contexts", "context", context_name, of_context)
    cluster = _named(document, "clusters", "cluster", chosen.get("cluster"), "the name in the context's cluster")
    user = _named(document, "users", "user", chosen.get("user"), "the name in the context's user")
    for unsupported in ("as", "auth-provider", "username"):
        if unsupported in user:
            why = f"users[].user.{unsupported} is not supported; use a client certificate, a token or exec"
            raise KubeconfigError(why)
    if cluster.get("insecure-skip-tls-verify"):
        raise KubeconfigError("insecure-skip-tls-verify is not supported; use certificate-authority-data")
    if cluster.get("proxy-url"):
        raise KubeconfigError("proxy-url is not supported; the API server must be reachable without a proxy")
    base = directory or Path()
    ca = _content(cluster, "certificate-authority", base)
    certificate, private_key = _content(user, "client-certificate", base), _content(user, "client-key", base)
    if (certificate is None) != (private_key is None):
        raise KubeconfigError("client-certificate and client-key must be set together")
    pair = (certificate, private_key) if certificate and private_key else None
    token: TokenSource | None = None
    if user.get("tokenFile"):
        token = TokenFile(base / _text(user, "tokenFile", "users[].user"))
    elif user.get("token"):
        value = _text(user, "token", "users[].user")
        logs.hide(value)
        token = lambda: value  # noqa: E731
    elif user.get("exec"):
        settings = _mapping(user["exec"], "users[].user.exec")
        if "/" in str(settings.get("command")):  # Otherwise it is on the PATH.
            settings = {**settings, "command": str(base.absolute() / str(settings["command"]))}
        try:
            token = ExecToken(settings)
        except ValueError as error:
            raise KubeconfigError(f"users[].user.exec.{error}") from None
    of_cluster = "clusters[].cluster"
    server_name = _text(cluster, "tls-server-name", of_cluster) if cluster.get("tls-server-name") else None
    namespace = _text(chosen, "namespace", "contexts[].context") if chosen.get("namespace") else "default"
    return _connection(_text(cluster, "server", of_cluster), ca, pair, token, server_name, namespace)


def in_cluster(directory: Path | None = None, environment: Mapping[str, str] = os.environ) -> Connection:
    """The connection of the pod's service account.

    `directory` takes precedence over KUBERNETES_SERVICE_ACCOUNT_DIR, which takes precedence over the default.
    """
    directory = directory or Path(environment.get(SERVICE_ACCOUNT_DIR_VARIABLE) or SERVICE_ACCOUNT_DIR)
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise KubeconfigError("KUBERNETES_SERVICE_HOST is not set: not running in a pod; use a kubeconfig")
    try:
        ca = (directory / "ca.crt").read_bytes()
    except OSError as error:
        raise KubeconfigError(f"cannot read the service account's CA: {error}") from error
    token = TokenFile(directory / "token")
    token()
    try:
        namespace = (directory / "namespace").read_text().strip()
    except OSError:  # A projected service account need not have it.
        namespace = ""
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return _connection(server, ca, None, token, None, namespace or "default")


class TokenFile:
    """A bearer token in a file that is rotated."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._token = ""
        self._read_at = float("-inf")

    def __call__(self) -> str:
        """The token, at most a minute old. If the file cannot be read (it may be rotating), the previous token.

        Raises `KubeconfigError` if the file could never be read.
        """
        with self._lock:
            if time.monotonic() - self._read_at > _TOKEN_LIFETIME:
                try:
                    self._token = self._path.read_text().strip()
                    logs.hide(self._token)
                except (OSError, ValueError) as error:
                    if not self._token:
                        raise KubeconfigError(f"cannot read the token file: {_why(error)}") from None
                    _log.warning("could not reload the token error=%r", _why(error))
                self._read_at = time.monotonic()
            return self._token


def _named(document: Mapping[str, Any], section: str, member: str, wanted: object, shown: str) -> dict[str, Any]:
    entries = document.get(section) or []
    if not isinstance(entries, list):
        raise KubeconfigError(f"{section} in the kubeconfig is not a list")
    for index, each in enumerate(entries):
        entry = _mapping(each, f"{section}[{index}]")
        if entry.get("name") == wanted:
            return _mapping(entry.get(member) or {}, f"{section}[{index}].{member}")
    raise KubeconfigError(f"{section} in the kubeconfig has no entry with {shown}")


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise KubeconfigError(f"{where} in the kubeconfig is not a mapping")
    return value


def _text(entry: Mapping[str, Any], field_name: str, where: str) -> str:
    value = entry.get(field_name)
    if not isinstance(value, str):
        raise KubeconfigError(f"{where}.{field_name} in the kubeconfig is {'not a string' if value else 'missing'}")
    return value


def _why(error: Exception) -> str:
    """The reason without the file's name, which may be a misplaced credential."""
    return str(error.strerror) if isinstance(error, OSError) else "not a UTF-8 text file, or not a valid path"


def _content(entry: Mapping[str, Any], field_name: str, base: Path) -> bytes | None:
    if data := entry.get(f"{field_name}-data"):
        try:
            return base64.b64decode(str(data), validate=True)
        except (binascii.Error, ValueError):
            raise KubeconfigError(f"{field_name}-data is not valid base64") from None
    if path := entry.get(field_name):
        try:
            return (base / str(path)).read_bytes()
        except (OSError, ValueError) as error:
            raise KubeconfigError(f"cannot read the file of {field_name}: {_why(error)}") from None
    return None


def _connection(
    server: str,
    ca: bytes | None,
    client: tuple[bytes, bytes] | None,
    token: TokenSource | None,
    server_name: str | None,
    namespace: str,
) -> Connection:
    try:
        url = urlsplit(server)
        host, port, path = url.hostname or "", url.port, url.path.rstrip("/")
    except ValueError:  # Invalid port, or unbalanced brackets.
        host, port, path = "", None, ""
    valid = re.fullmatch(r"[\w.:-]+", host) and re.fullmatch(r"[\w./:~%-]*", path, re.ASCII)
    if not valid or url.scheme not in ("http", "https"):
        raise KubeconfigError("clusters[].cluster.server is not a URL such as https://HOST:6443")
    tls = _tls(ca, client) if url.scheme == "https" else None
    number = port or (443 if url.scheme == "https" else 80)
    certificate = None if client is None or tls is None else client[0]
    return Connection(url.scheme, host, number, tls, token, server_name, namespace, certificate, path)


def _tls(ca: bytes | None, client: tuple[bytes, bytes] | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=ca.decode() if ca else None)
    except (ssl.SSLError, TypeError, ValueError):
        raise KubeconfigError("certificate-authority is not a valid PEM certificate") from None
    if client is not None:
        try:
            pem.load(context, client[0] + b"\n" + client[1])
        except ssl.SSLError:
            raise KubeconfigError("client-certificate and client-key are not a valid PEM pair") from None
    return context
