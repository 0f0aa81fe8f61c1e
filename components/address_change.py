"""Stops or announces, in a preview, a Service's change that costs its address: the cluster would notice it too late."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi

from cloud_controller.cloud import CloudError
from cloud_controller.controllers.service.address_changes import ANNOTATION
from cloud_controller.kube import ApiError, KubeconfigError, NotFoundError
from cloud_controller.load_balancers.catalogue import Catalogue

from . import cluster_access
from .messages import warn
from .placeholder import PlaceholderSecrets

if TYPE_CHECKING:
    from cloud_controller.plan import Action

SIMULATED = "__simulated"
"""The output that marks what the recorder (`local/plugins`) made: no cloud has it."""


class ProtectedAddress(Exception):
    """A protected Service would get another address."""


@dataclass(frozen=True)
class Finding:
    """A change that costs the address of the Service NAMESPACE/NAME. `fields`: what changes, as FIELD: FROM -> TO.

    `digest`: what acknowledges it; None if the cluster cannot be seen, and then `unseen` is the reason.
    """

    key: str
    fields: tuple[str, ...]
    summary: str = "a new load balancer replaces the old one; the address changes"
    digest: str | None = None
    unseen: str = ""

    def allows(self, acknowledged: str | None) -> bool:
        """Whether this acknowledgement is for this change; one that cannot be compared counts."""
        return bool(acknowledged) and self.digest in (None, acknowledged)

    def warning(self) -> str:
        """For a change that may happen."""
        unseen = f" (by its annotations alone: {self.unseen})" if self.unseen else ""
        return f"{self.summary}{unseen}: {'; '.join(self.fields)}"

    def refusal(self, acknowledged: str | None) -> str:
        """For a change that must not happen, with what lets it happen."""
        lines = [f"Service {self.key} is protected, and this change would cost its address ({self.summary}):"]
        lines += [f"  {each}" for each in self.fields]
        if self.digest is None:
            lines.append(f"Undo it, or acknowledge it; its digest shows in a preview with the cluster: {self.unseen}")
            return "\n".join(lines)
        if acknowledged:
            lines.append(f"The acknowledgement {acknowledged} is for another change.")
        lines += [
            "Undo it, or let it happen by the stack's config:",
            "  cloud-controller:replaceAddress:",
            f'    - {self.key}: "{self.digest}"',
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class View:
    """How the program itself looks at a Service's cluster: as the dynamic resources do, by the stack's config."""

    cloud: str
    cluster_id: pulumi.Input[str]
    network_id: pulumi.Input[str]
    existing: bool
    arguments: Sequence[str]
    config: pulumi.Config

    async def change(self, key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Action | None:
        """The change by which the Service would get another address.

        Raises PlaceholderSecrets and the errors of cloud and API server where that cannot be seen.
        """
        ids = await pulumi.Output.all(self.cluster_id, self.network_id).future()
        if ids is None:
            raise PlaceholderSecrets("the cluster's ids are not known yet")
        props = {"cloud": self.cloud, "cluster_id": ids[0], "network_id": ids[1], "existing": self.existing}
        return await asyncio.to_thread(self._planned, props, key, before, after)

    def _planned(
        self, props: Mapping[str, Any], key: str, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> Action | None:
        from . import service_plan
        from .cluster_plan import World

        cloud_config = cluster_access.cloud_config(self.config, props)
        world = World.open(self.cloud, cloud_config, cluster_access.own_kubeconfig(self.config, props))
        with suppress(NotFoundError):
            service = service_plan.updated(service_plan.read(world, key), before, after)
            return service_plan.address_change(world, service, service_plan.options_of(self.cloud, self.arguments))
        return None


def address_hook(name: str, catalogue: Catalogue, view: View | None, *, protect: bool) -> pulumi.ResourceHook:
    """A hook for the Service `name`: before an update, in previews too, it calls `check_update`."""

    async def check(args: pulumi.ResourceHookArgs) -> None:
        await check_update(args, catalogue, view, protect=protect)

    return pulumi.ResourceHook(f"address-of-{name}", check, pulumi.ResourceHookOptions(on_dry_run=True))


async def check_update(
    args: pulumi.ResourceHookArgs, catalogue: Catalogue, view: View | None, *, protect: bool
) -> None:
    """Warn of an update that costs the Service's address.

    Raises ProtectedAddress for that of a protected Service, unless it is acknowledged. Without `view` the annotations
    alone say what changes, and nothing fails.
    """
    before, after = _annotations(args)
    finding = None
    if _concerns(catalogue, before, after):
        finding = await _find(args, catalogue, view)
    if finding is None and (hidden := await _secretly_changed(args, catalogue)):
        finding = Finding(args.id, hidden, unseen="its value is secret")
    if finding is None:
        return
    if protect and view is not None and not finding.allows(after.get(ANNOTATION)):
        raise ProtectedAddress(finding.refusal(after.get(ANNOTATION)))
    warn(args.urn, finding.warning())


def changed_fields(
    catalogue: Catalogue, before: Mapping[str, str], after: Mapping[str, str], of_class: str | None = None
) -> list[str]:
    """The annotations whose change costs a Service of this class an address, as NAME: FROM -> TO."""
    found = catalogue.of_class(of_class).readdressing(before, after, of_class)
    return [f"{entry.name}: {_shown(was)} -> {_shown(will_be)}" for entry, was, will_be in found]


def texts(annotations: Mapping[str, Any] | None, before: Mapping[str, str] | None = None) -> dict[str, str]:
    """A Service's annotations; those that are not known yet as they were `before`: the update itself sees them."""
    before = before or {}
    known = {key: text if isinstance(text, str) else before.get(key) for key, text in (annotations or {}).items()}
    return {key: text for key, text in known.items() if text is not None}


async def _find(args: pulumi.ResourceHookArgs, catalogue: Catalogue, view: View | None) -> Finding | None:
    before, after = args.old_inputs or {}, args.new_inputs or {}
    if view is None or (args.old_outputs or {}).get(SIMULATED):
        unseen = "this run has no cluster"
    else:
        try:
            change = await view.change(args.id, before, after)
        except (PlaceholderSecrets, CloudError, ApiError, KubeconfigError) as error:
            unseen = str(error)
        else:
            if change is None:
                return None
            return Finding(args.id, tuple(map(str, change.changes)), change.summary, change.held)
    of_class = (after.get("spec") or {}).get("loadBalancerClass")
    fields = changed_fields(catalogue, *_annotations(args), of_class)
    return Finding(args.id, tuple(fields), unseen=unseen) if fields else None


async def _secretly_changed(args: pulumi.ResourceHookArgs, catalogue: Catalogue) -> tuple[str, ...]:
    """The annotations that may cost the address and have another secret value; a plan would show the value."""
    before, after = _given(args.old_inputs), _given(args.new_inputs)
    found = []
    for name in {**before, **after}:
        entry = catalogue.entry(name)
        values = (before.get(name), after.get(name))
        if entry is None or not catalogue.readdresses(entry):
            continue
        if not any(isinstance(each, pulumi.Output) for each in values):
            continue
        was, will_be = [await each.future() if isinstance(each, pulumi.Output) else each for each in values]
        if was != will_be:
            found.append(f"{name}: another secret value")
    return tuple(found)


def _given(inputs: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return ((inputs or {}).get("metadata") or {}).get("annotations") or {}


def _annotations(args: pulumi.ResourceHookArgs) -> tuple[dict[str, str], dict[str, str]]:
    """The Service's annotations before and after the update."""
    old, new = _given(args.old_inputs), _given(args.new_inputs)
    before = texts(old)
    return before, texts(new, before)


def _concerns(catalogue: Catalogue, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether anything changes that the controller reads."""
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return any(name == ANNOTATION or catalogue.entry(name) is not None for name in changed)


def _shown(value: object) -> str:
    return "none" if value is None else repr(value)
