"""What the providers of the engine's tests have in common."""

from __future__ import annotations

from local.engine.providers.provider import DiffKind, DiffRequest, DiffResult, PropertyDiff
from local.engine.values import without_secrets


def diff_of_things(request: DiffRequest) -> DiffResult:
    """By property; a changed `kind` replaces, everything else changes in place."""
    olds, news = without_secrets(request.old_inputs), without_secrets(request.news)
    changed = [k for k in sorted({*olds, *news}) if olds.get(k) != news.get(k)]
    replaces = tuple(k for k in changed if k == "kind")
    kinds = {k: DiffKind.UPDATE_REPLACE if k in replaces else DiffKind.UPDATE for k in changed}
    return DiffResult(bool(changed), replaces, detailed={k: PropertyDiff(kind) for k, kind in kinds.items()})
