"""Access to Kubernetes objects in the form that the analyzer hands to rules: touching an unknown value raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pulumi_policy import PolicyConfigSchema

SERVICE = "kubernetes:core/v1:Service"
WORKLOADS = (
    "kubernetes:apps/v1:DaemonSet",
    "kubernetes:apps/v1:Deployment",
    "kubernetes:apps/v1:StatefulSet",
)

_IMAGES = {
    "type": "array",
    "items": {"type": "string"},
    "default": [],
    "description": "Further image repositories, by their last part, that are cloud controller managers.",
}


def schema(**settings: Mapping[str, Any]) -> PolicyConfigSchema:
    """A rule's settings: its own, and `exempt`, which all rules have."""
    return PolicyConfigSchema(
        properties={
            "exempt": {
                "type": "array",
                "items": {"type": "string"},
                "default": [],
                "description": "Objects that the rule ignores: NAMESPACE/NAME, NAME, or the resource's name.",
            },
            **{name: dict(setting) for name, setting in settings.items()},
        }
    )


def ccm_schema(**settings: Mapping[str, Any]) -> PolicyConfigSchema:
    """The settings of a rule about cloud controller managers: `images` adds to those that it recognises."""
    return schema(images=_IMAGES, **settings)


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


def each(value: Any) -> Iterator[Callable[[], Any]]:
    """As `items`, but an unknown element raises only when it is called."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        for index in range(len(value)):
            yield partial(value.__getitem__, index)


def object_name(props: Mapping[str, Any]) -> str:
    """`NAMESPACE/NAME`, or `NAME`. Raises UnknownValueError."""
    namespace, name = dig(props, "metadata", "namespace"), dig(props, "metadata", "name") or ""
    return f"{namespace}/{name}" if namespace else str(name)


def is_exempt(config: Mapping[str, Any], props: Mapping[str, Any], resource_name: str) -> bool:
    """Whether the rule's settings exempt this object. Raises UnknownValueError if that depends on an unknown name."""
    exempt = config.get("exempt") or []
    if not exempt or resource_name in exempt:
        return bool(exempt)
    full = object_name(props)
    return full in exempt or full.rpartition("/")[2] in exempt


def is_judged(config: Mapping[str, Any], props: Mapping[str, Any], resource_name: str) -> bool:
    """The opposite of `is_exempt`."""
    return not is_exempt(config, props, resource_name)
