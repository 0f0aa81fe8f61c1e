"""Asks the API server what it would store for each Service of the manifests, by dry runs. Nothing is stored.

Defaults, node ports and admission answer as when the manifests are applied. A Service is written as kubectl or a
GitOps tool would write it:

- one that does not exist is created;
- one that `kubectl apply` recorded its manifest in is merged with that manifest and replaced;
- any other is applied by the API server (server-side apply), as the field manager that applied it last.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from cloud_controller.cli.planned_service import Refusal
from cloud_controller.cli.service_defaults import with_defaults
from cloud_controller.cli.service_files import GivenService, Manifests
from cloud_controller.cli.service_merge import last_applied, merged
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.kube import (
    SERVICES,
    ApiError,
    ForbiddenError,
    Kube,
    NotFoundError,
    Object,
    PatchType,
    TooManyRequestsError,
    UnauthorizedError,
    key,
)

DEFAULT_MANAGER = "kubectl"
_WORKERS = 8
"""Concurrent dry runs: the API server's own limits on one client are far above."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server would store for a Service and what it warns of, or why it refuses it.

    `assumed`: it was not asked, because the Service's namespace is among the manifests and does not exist yet.
    """

    given: GivenService
    service: Object | None = None
    refusal: Refusal | None = None
    assumed: bool = False
    warnings: tuple[str, ...] = ()


def ask(kube: Kube, manifests: Manifests, *, force_conflicts: bool = False) -> list[Answer]:
    """The answers, in the manifests' order.

    `force_conflicts`: take over fields of other managers, as `kubectl apply --server-side --force-conflicts` does.
    Raises ApiError if the API server cannot be asked, or if this identity may not write Services: dry runs need that.
    """
    stored = {key(service): service for service in kube.list(SERVICES).items} if manifests.services else {}
    answer = partial(_answer, kube, stored, manifests.namespaces, force_conflicts)
    with ThreadPoolExecutor(_WORKERS) as workers:
        return list(workers.map(answer, manifests.services))


def manager_of(live: Object) -> str:
    """The field manager that applied the Service last."""
    applied = [
        each
        for each in live["metadata"].get("managedFields") or ()
        if each.get("operation") == "Apply" and not each.get("subresource")
    ]
    last = max(applied, key=lambda each: str(each.get("time", "")), default={"manager": DEFAULT_MANAGER})
    return str(last["manager"])


def _answer(
    kube: Kube, stored: dict[str, Object], namespaces: frozenset[str], force: bool, given: GivenService
) -> Answer:
    live = stored.get(given.key)
    warnings: list[str] = []
    try:
        written = _written(kube.hearing(warnings.append), given.object, live, force)
        return Answer(given, written, warnings=tuple(warnings))
    except NotFoundError as error:
        if live is not None or given.object["metadata"]["namespace"] not in namespaces:
            return Answer(given, refusal=_refusal(error))
        try:
            return Answer(given, with_defaults(given.object), assumed=True)
        except InvalidConfiguration as fault:
            return Answer(given, refusal=Refusal.of(fault))
    except ApiError as error:
        if not 400 <= error.status < 500 or isinstance(error, UnauthorizedError | TooManyRequestsError):
            raise
        if isinstance(error, ForbiddenError) and 'resource "services"' in error.message:
            raise
        return Answer(given, refusal=_refusal(error))


def _written(kube: Kube, manifest: Object, live: Object | None, force: bool) -> Object:
    if live is None:
        return kube.create(SERVICES, manifest, field_manager=DEFAULT_MANAGER, dry_run=True, strict=True)
    if (last := last_applied(live)) is not None:
        wanted = merged(last, manifest, live)
        if wanted is live:  # kubectl sends nothing then.
            return live
        metadata = {name: value for name, value in wanted["metadata"].items() if name != "resourceVersion"}
        return kube.replace(SERVICES, {**wanted, "metadata": metadata}, dry_run=True, strict=True)
    return kube.patch(
        SERVICES,
        manifest["metadata"]["name"],
        manifest,
        manifest["metadata"]["namespace"],
        type=PatchType.APPLY,
        field_manager=manager_of(live),
        force=force,
        dry_run=True,
    )


def _refusal(error: ApiError) -> Refusal:
    """What the API server says, without the request, and the first field that it names."""
    _, _, said = error.message.removesuffix(f" (HTTP {error.status})").partition(": ")
    fields = (each.get("field") for each in error.details.get("causes") or () if isinstance(each, dict))
    return Refusal(said or error.message, next((str(field) for field in fields if field), ""))
