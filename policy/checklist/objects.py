"""How rules look at Kubernetes objects: as the analyzer hands them out, where touching an unknown value raises.

An `UnknownValueError` that leaves a rule makes the engine report the rule as not evaluated. So a rule may only swallow
one where the answer does not depend on the value; `first_known` is the one place that does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from pulumi_policy import PolicyConfigSchema
from pulumi_policy.proxy import UnknownValueError

WORKLOADS = (
    "kubernetes:apps/v1:DaemonSet",
    "kubernetes:apps/v1:Deployment",
    "kubernetes:apps/v1:StatefulSet",
)
# The last part of an image's repository, or a command's: cloud-controller-manager, aws-cloud-controller-manager,
# cloud-controller (this project's), hcloud-ccm, cloud-provider-vsphere.
_CCM = re.compile(r"(^|[-_])(cloud-controller(-manager)?|ccm|cloud-provider-[a-z0-9]+)$")

T = TypeVar("T")


def schema(**settings: Mapping[str, Any]) -> PolicyConfigSchema:
    """A rule's settings: its own, and the two that all rules have."""
    return PolicyConfigSchema(
        properties={
            "exempt": {
                "type": "array",
                "items": {"type": "string"},
                "default": [],
                "description": "Objects that the rule leaves alone: NAMESPACE/NAME, NAME, or the resource's name.",
            },
            "images": {
                "type": "array",
                "items": {"type": "string"},
                "default": [],
                "description": "Further image repositories, by their last part, that are cloud controller managers.",
            },
            **{name: dict(setting) for name, setting in settings.items()},
        }
    )


def dig(value: Any, *keys: str) -> Any:
    """The value under these keys; None where one is absent. Raises UnknownValueError."""
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def items(value: Any) -> Iterator[Any]:
    """A list's elements; nothing where there is no list. Raises UnknownValueError at an unknown element."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from value


def first_known(values: Iterable[Callable[[], T | None]]) -> T | None:
    """The first value that is there. Raises the first UnknownValueError only if no known value is there."""
    unknown: UnknownValueError | None = None
    for value in values:
        try:
            found = value()
        except UnknownValueError as error:
            unknown = unknown or error
            continue
        if found:
            return found
    if unknown is not None:
        raise unknown
    return None


def object_name(props: Mapping[str, Any]) -> str:
    """`NAMESPACE/NAME`, or `NAME`. Raises UnknownValueError."""
    namespace, name = dig(props, "metadata", "namespace"), dig(props, "metadata", "name") or ""
    return f"{namespace}/{name}" if namespace else str(name)


def is_exempt(config: Mapping[str, Any], props: Mapping[str, Any], resource_name: str) -> bool:
    """Whether the rule's settings leave this object alone. Raises UnknownValueError if only its name could tell."""
    exempt = config.get("exempt") or []
    if not exempt or resource_name in exempt:
        return bool(exempt)
    full = object_name(props)
    return full in exempt or full.rpartition("/")[2] in exempt


def ccm_container(props: Mapping[str, Any], config: Mapping[str, Any]) -> str | None:
    """The name of the workload's container that is a cloud controller manager; None if it has none.

    Raises UnknownValueError if only an unknown value could tell.
    """
    images = tuple(config.get("images") or ())
    pod = dig(props, "spec", "template", "spec")
    containers = dig(pod, "containers")
    count = len(containers) if isinstance(containers, Sequence) else 0
    return first_known(
        partial(_ccm_name, containers, index, what, images) for index in range(count) for what in ("image", "command")
    )


def _ccm_name(containers: Sequence[Any], index: int, what: str, images: tuple[str, ...]) -> str | None:
    container = containers[index]
    if what == "image":
        program = _repository(str(dig(container, "image") or ""))
    else:
        program = str(next(items(dig(container, "command")), "")).rpartition("/")[2]
    return str(dig(container, "name") or program) if _CCM.search(program) or program in images else None


def _repository(image: str) -> str:
    """`cloud-controller` of `registry.example/a/cloud-controller:v1@sha256:…`."""
    last = image.partition("@")[0].rpartition("/")[2]
    return last.partition(":")[0]
