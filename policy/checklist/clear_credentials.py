"""Rule: credentials are in Secrets, and in no other object's entries or annotations."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from policy.credentials import credentials
from policy.objects import dig
from policy.rules import ADVISORY, HIGH, ResourceRule
from policy.subjects import CONFIG_MAP, SECRET, Subject
from policy.unknowns import Problem

_COPY = "kubectl.kubernetes.io/last-applied-configuration"
_TELLING = re.compile(r"pass|pwd|secret|token|key", re.I)


def problems(subject: Subject) -> Iterator[Problem]:
    """Entries of ConfigMaps, and annotations, that hold credentials."""
    if ":" in subject.kind:
        # Pulumi's type of something that is no Kubernetes object.
        return
    if subject.kind == CONFIG_MAP:
        yield from _of_entries("data", dig(subject.props, "data"), str)
        yield from _of_entries("binaryData", dig(subject.props, "binaryData"), _decoded)
    annotations = dig(subject.props, "metadata", "annotations")
    for name in annotations or ():
        if name == _COPY and subject.kind == SECRET:
            yield lambda: f"annotation {_COPY} is a copy of the Secret, which `kubectl describe` shows"
        elif name == _COPY or _TELLING.search(name):
            # Others may be unknown, and say nothing.
            yield partial(_of_entry, f"annotation {name}", name.rpartition("/")[2], annotations, name, str)


def _of_entries(field: str, entries: Any, decode: Callable[[str], str]) -> Iterator[Problem]:
    for key in entries or ():
        yield partial(_of_entry, f"{field}[{key}]", key, entries, key, decode)


def _of_entry(what: str, name: str, entries: Mapping[str, Any], key: str, decode: Callable[[str], str]) -> str | None:
    # `password.txt` is a password.
    found = credentials(name.removesuffix(".txt"), decode(str(entries[key])))
    # The keys' names only: a message must never show credentials.
    return f"{what} holds credentials in clear ({', '.join(found)})" if found else None


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode(errors="replace")
    except ValueError:
        return ""


NO_CLEAR_CREDENTIALS = ResourceRule(
    "object-avoid-credentials",
    problems,
    why=(
        "Credentials belong in Secrets. Far more identities can read ConfigMaps and other objects, which are not "
        "encrypted at rest and are shown in previews."
    ),
    level=ADVISORY,
    reports_good=(
        "texts in which a word such as `password` or `token` is followed by no credential (`nsswitch.conf`, SQL, "
        "GraphQL, CUE, source code, pages, names of cookies and columns), placeholders in other brackets (`((a))`, "
        "`{a}`, `__A__`), and values that are encrypted or hashed (`{cipher}…`, `$6$…`)"
    ),
    title="Credentials only in Secrets",
    severity=HIGH,
    lines=["11.1.1"],
    sections="8.1, corrected",
    judges=(
        "No entry of a ConfigMap, and no annotation with a telling name, holds a credential in clear. An entry may be "
        "the credential itself (`SECRET_ACCESS_KEY`, `auth-token`, `password.txt`), or a file with one: JSON, YAML of "
        "several documents (a kubeconfig, a manifest), INI (a cloud config, a cloud's file of credentials), an env "
        "file, properties, TOML. Private keys, access keys, tokens of well-known services, JSON web tokens, "
        "Authorization headers and URLs with a password are recognised by their form. "
        "`kubectl.kubernetes.io/last-applied-configuration` is read like a file; on a Secret it is reported, because "
        "it repeats the Secret. Placeholders (`${PASSWORD}`, `{{ .password }}`, `<password>`), paths, URLs and "
        "references (`$dex.github.clientSecret`, `vault:…`, `arn:…`) do not count, nor do certificates, public keys, "
        "values of fewer than four characters, or the texts of a file of translations (`messages_de.properties`, "
        "`i18n.json`), of which only forms count. Messages name keys, never values."
    ),
    unseen=(
        "A credential under a name that says nothing and without a form that tells, in an encoding or an archive "
        "inside an entry, behind a YAML alias, or one that looks like a name (`secret: blue-house`); credentials in "
        "other objects' fields, such as a custom resource's, and in annotations whose names say nothing."
    ),
    tags=["credentials"],
    remedy=(
        "Put the entry into a Secret (stringData, from a secret of the stack's config), delete it here, and replace "
        "the credential, which has been in clear."
    ),
    url="https://kubernetes.io/docs/concepts/configuration/secret/",
)
