"""A cloud in memory as a provider, and the shared parts of the tests' providers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from local.plugins.provider import (
    CheckFailure,
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffKind,
    DiffRequest,
    DiffResult,
    PropertyDiff,
    ProviderError,
    ReadResult,
    UpdateRequest,
)
from local.plugins.urn import name_of
from local.plugins.values import PropertyMap, without_secrets


def diff_of_things(request: DiffRequest) -> DiffResult:
    """By property; a changed `kind` replaces, everything else changes in place."""
    olds, news = without_secrets(request.old_inputs), without_secrets(request.news)
    changed = [k for k in sorted({*olds, *news}) if olds.get(k) != news.get(k)]
    replaces = tuple(k for k in changed if k == "kind")
    kinds = {k: DiffKind.UPDATE_REPLACE if k in replaces else DiffKind.UPDATE for k in changed}
    return DiffResult(bool(changed), replaces, detailed={k: PropertyDiff(kind) for k, kind in kinds.items()})


@dataclass
class Memory:
    """A cloud in memory: its objects, the calls, and faults by `verb name`. Creates are idempotent."""

    objects: dict[str, PropertyMap] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    timeouts: dict[str, float] = field(default_factory=dict)
    """The last timeout of each call, in seconds."""
    configs: list[PropertyMap] = field(default_factory=list)
    """The settings of each provider instance."""
    compares: bool = True
    """Whether it reports the differences by property; else the engine computes them."""
    faults: dict[str, BaseException] = field(default_factory=dict)
    after: dict[str, BaseException] = field(default_factory=dict)
    """Raised after the thing was done."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    barrier: threading.Barrier | None = None
    waits_for: dict[str, str] = field(default_factory=dict)
    """By resource, the object that must exist before its create is done."""
    outlives: dict[str, str] = field(default_factory=dict)
    """By resource, the object that must be gone before its delete is done."""
    made: threading.Condition = field(default_factory=threading.Condition)

    def note(self, verb: str, urn: str, timeout: float = 0) -> None:
        call = f"{verb} {name_of(urn)}"
        with self.lock:
            self.calls.append(call)
            self.timeouts[call] = timeout
        if call in self.faults:
            raise self.faults[call]

    def done(self, verb: str, urn: str) -> None:
        if error := self.after.pop(f"{verb} {name_of(urn)}", None):
            raise error

    def asked(self, *verbs: str) -> list[str]:
        return [c for c in self.calls if c.split()[0] in verbs]


class MemoryProvider:
    """Manages `memory:index:Thing`."""

    accepts_secrets = False
    supports_preview = False

    def __init__(self, cloud: Memory, config: PropertyMap) -> None:
        self.cloud = cloud
        self.config = config
        cloud.configs.append(config)
        self._place = f"{config['place']}/" if "place" in config else ""

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        return ("place",) if config.get("place") != self.config.get("place") else ()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        del olds
        self.cloud.note("check", urn)
        if news.get("size") == -1:
            return CheckResult(news, (CheckFailure("size", "must be positive"),))
        return CheckResult(news)

    def diff(self, request: DiffRequest) -> DiffResult:
        self.cloud.note("diff", request.urn)
        return diff_of_things(request) if self.cloud.compares else DiffResult(None)

    def create(self, request: CreateRequest) -> CreateResult:
        assert not request.preview
        urn = request.urn
        self.cloud.note("create", urn, request.timeout)
        if self.cloud.barrier is not None:
            self.cloud.barrier.wait(60)
        plain = without_secrets(request.inputs)
        made = f"{name_of(urn)}-{plain.get('kind', 'a')}"
        self.cloud.objects[self._place + made] = plain
        with self.cloud.made:
            self.cloud.made.notify_all()
            awaited = self.cloud.waits_for.get(name_of(urn))
            if awaited and not self.cloud.made.wait_for(lambda: awaited in self.cloud.objects, timeout=60):
                raise ProviderError(f"{awaited} did not come")
        self.cloud.done("create", urn)
        return CreateResult(made, {**plain, "address": f"address of {made}"})

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        del inputs, outputs
        self.cloud.note("read", urn)
        found = self.cloud.objects.get(self._place + id)
        if found is None:
            return ReadResult(None, {})
        return ReadResult(id, {**found, "address": f"address of {id}"}, dict(found))

    def update(self, request: UpdateRequest) -> PropertyMap:
        assert not request.preview
        self.cloud.note("update", request.urn, request.timeout)
        plain = without_secrets(request.news)
        self.cloud.objects[self._place + request.id] = plain
        self.cloud.done("update", request.urn)
        return {**plain, "address": f"address of {request.id}"}

    def delete(self, request: DeleteRequest) -> None:
        self.cloud.note("delete", request.urn, request.timeout)
        with self.cloud.made:
            awaited = self.cloud.outlives.get(name_of(request.urn))
            if awaited and not self.cloud.made.wait_for(lambda: awaited not in self.cloud.objects, timeout=60):
                raise ProviderError(f"{awaited} did not go")
            self.cloud.objects.pop(self._place + request.id, None)
            self.cloud.made.notify_all()
        self.cloud.done("delete", request.urn)

    def close(self) -> None:
        pass
