"""Warns in a preview of a Service's change that costs its address: the cluster would notice it only afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from cloud_controller.load_balancers.catalogue import Catalogue

from .messages import warn


def warn_before_update(name: str, catalogue: Catalogue) -> pulumi.ResourceHook:
    """A hook for the Service `name`: before an update, in previews too, it warns of a change that replaces its
    load balancer, and so changes its address."""

    def warn_of_changes(args: pulumi.ResourceHookArgs) -> None:
        before, after = _annotations(args.old_inputs), _annotations(args.new_inputs)
        for line in address_changes(catalogue, before, after, _class(args.new_inputs)):
            warn(args.urn, line)

    return pulumi.ResourceHook(f"address-of-{name}", warn_of_changes, pulumi.ResourceHookOptions(on_dry_run=True))


def address_changes(
    catalogue: Catalogue, before: Mapping[str, str], after: Mapping[str, str], of_class: str | None = None
) -> list[str]:
    """A line for each annotation whose change replaces the load balancer of a Service of this class."""
    return [
        f"{entry.name} changes from {_shown(was)} to {_shown(will_be)}: a new load balancer replaces the old one, "
        "and the address changes; outputs show the new address after the next refresh"
        for entry, was, will_be in catalogue.of_class(of_class).replacing(before, after, of_class)
    ]


def _annotations(inputs: Mapping[str, Any] | None) -> dict[str, str]:
    """The known ones; the update itself sees the others."""
    annotations = ((inputs or {}).get("metadata") or {}).get("annotations") or {}
    return {key: value for key, value in annotations.items() if isinstance(value, str)}


def _class(inputs: Mapping[str, Any] | None) -> str | None:
    found = ((inputs or {}).get("spec") or {}).get("loadBalancerClass")
    return found if isinstance(found, str) else None


def _shown(value: object) -> str:
    return "none" if value is None else repr(value)
