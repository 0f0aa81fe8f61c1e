"""The Secrets that a stack's cloud controller managers (CCMs) read, and the cloud configs in them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from policy import clouds
from policy.clouds.interface import PolicyCloud
from policy.command_lines import flag
from policy.objects import dig, each
from policy.references import Reference, of_file, references
from policy.rules import Stack
from policy.subjects import SECRET, Subject
from policy.unknowns import first_known, if_known
from policy.workloads import WORKLOADS, ccm_container, containers, pod

FLAG = "--cloud-config"
_CLOUD_FLAGS = ("--cloud", "--cloud-provider")


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """The cloud config of a CCM, in a Secret of the stack."""

    workload: Subject
    secret: Subject
    key: str
    cloud: PolicyCloud
    text: Callable[[], str | None]
    """None: unknown until the update."""


def ccms_reading(stack: Stack, secret: Subject) -> Iterator[tuple[Subject, list[Reference]]]:
    """The CCMs that read a Secret, with what they read of it. Raises UnknownValueError."""
    name, space = dig(secret.props, "metadata", "name"), secret.namespace
    for workload in stack.of(*WORKLOADS):
        if workload.is_patch or workload.cluster != secret.cluster or workload.namespace != space:
            continue
        read = [found for found in references(pod(workload)) if (found.kind, found.name) == (SECRET, name)]
        if read and ccm_container(workload) is not None:
            yield workload, read


def cloud_configs(stack: Stack, secret: Subject) -> Iterator[CloudConfig]:
    """The cloud configs in a Secret, each with the cloud that its CCM says it is for. Raises UnknownValueError."""
    known = {cloud.name: cloud for cloud in clouds.descriptors()}
    texts = dict(known_entries(secret))
    for workload, _ in ccms_reading(stack, secret):
        spec = pod(workload)
        for container in (found() for found in containers(workload)):
            cloud = next((known[name] for word in _CLOUD_FLAGS if (name := _flag(container, word)) in known), None)
            path = _flag(container, FLAG) if cloud is not None else None
            for source in of_file(spec, container, path) if path else ():
                if cloud and (source.kind, source.name) == (SECRET, dig(secret.props, "metadata", "name")):
                    key = source.key or ""
                    if key in texts:
                        yield CloudConfig(workload, secret, key, cloud, partial(if_known, texts[key]))


def entries(secret: Subject) -> Iterator[tuple[str, Callable[[], str]]]:
    """The texts of a Secret's entries, by key. They raise UnknownValueError only when they are called."""
    for key in dig(secret.props, "data") or ():
        yield key, partial(_decoded, secret, key)
    for key in dig(secret.props, "stringData") or ():
        yield key, partial(_plain, secret, key)


def known_entries(secret: Subject) -> list[tuple[str, Callable[[], str]]]:
    """As `entries`; none where they are unknown until the update, as all data of a new cluster's Secret."""
    return if_known(lambda: [*entries(secret)]) or []


def _flag(container: Mapping[str, Any], name: str) -> str | None:
    """As `flag`; a word that is unknown is not taken for the same flag again."""
    words = {field: [if_known(word) or "" for word in each(dig(container, field))] for field in ("command", "args")}
    return first_known([partial(flag, {**container, **words}, name), partial(flag, container, name)])


def _decoded(secret: Subject, key: str) -> str:
    try:
        return base64.b64decode(str(secret.props["data"][key])).decode(errors="replace")
    except ValueError:
        return ""


def _plain(secret: Subject, key: str) -> str:
    return str(secret.props["stringData"][key])
