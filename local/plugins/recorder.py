"""The recorder: stands in for the providers of clouds that are not here, and for objects in a recorded cluster.

It creates nothing and calls no cloud. A preview shows the inputs, and whatever the cloud would answer is unknown; an
update keeps the resource with simulated outputs (rules: `recorder_values`), marked by `__simulated`. It records any
package; `Rules` add what a package's own provider would do.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final, Protocol, runtime_checkable

from local.plugins.provider import (
    Checker,
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    ProviderError,
    ReadResult,
    UpdateRequest,
)
from local.plugins.provider_inputs import default_tags_of
from local.plugins.recorder_values import Place, Rules, id_of, is_simulated, outputs_of, previewed
from local.plugins.secret_texts import hidden
from local.plugins.values import SIMULATED, UNKNOWN, PropertyMap, without_secrets

_DEFAULT_REGION: Final = "simulated-1"


class Recorder:
    """Every resource of one provider instance. `check` completes nothing, because there is no schema."""

    accepts_secrets = True
    foresees = False
    """Whether a preview knows the simulated values, as two commits that are compared with each other need."""

    def __init__(self, config: PropertyMap, rules: Rules | None = None) -> None:
        """`config`: the provider's inputs, of which region and default tags appear in outputs.

        Raises ProviderError for default tags that are not JSON.
        """
        self.rules = rules or Rules()
        plain = without_secrets(config)
        region = plain.get("region")
        self._place = Place(region if isinstance(region, str) else _DEFAULT_REGION, default_tags_of(plain))

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        """Nothing: recorders do not differ."""
        del config
        return ()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        del urn, olds
        return CheckResult(news)

    def diff(self, request: DiffRequest) -> DiffResult:
        """As the package's rules compare; else every difference is an update."""
        return self.rules.compare(request)

    def create(self, request: CreateRequest) -> CreateResult:
        urn, inputs = request.urn, request.inputs
        if request.preview and not self.foresees:
            return CreateResult("", _marked(previewed(urn, inputs, self.rules)))
        made = id_of(urn, inputs, self.rules)
        return CreateResult(made, self._simulated(urn, made, inputs))

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        """The state's outputs; simulated ones for an object that is only read. Its inputs are unknown: no import."""
        if SIMULATED in outputs:
            return ReadResult(id, outputs)
        return ReadResult(id, self._simulated(urn, id, inputs))

    def update(self, request: UpdateRequest) -> PropertyMap:
        if request.preview and not self.foresees:
            return _marked(previewed(request.urn, request.news, self.rules))
        return self._simulated(request.urn, request.id, request.news)

    def delete(self, request: DeleteRequest) -> None:
        """Nothing is there."""
        del request

    def invoke(self, token: str, args: PropertyMap) -> PropertyMap:
        """A provider function's simulated answer. Raises ProviderError for one that has none."""
        rule = self.rules.functions.get(token)
        if rule is None:
            known = ", ".join(sorted(self.rules.functions)) or "none"
            raise ProviderError(f"the function {token} has no simulated answer; functions with one: {known}")
        plain = without_secrets(args)
        return {**args, **rule(plain, replace(self._place, region=plain.get("region") or self._place.region))}

    def close(self) -> None:
        """Nothing is open."""

    def _simulated(self, urn: str, id: str, inputs: PropertyMap) -> PropertyMap:
        return _marked(hidden(outputs_of(urn, id, inputs, self._place, self.rules), inputs))


@runtime_checkable
class PartlyRecorded(Protocol):
    """A provider that cannot manage all types of its package where it runs: some are only recorded."""

    recorded_types: Collection[str]
    recorder: Recorder


class StandIn(Recorder):
    """Resources of a package that runs here, made of simulated values: checked by its provider, then only recorded."""

    def __init__(self, provider: Checker, *, calls: bool) -> None:
        """`calls`: the provider may call what inputs point to, so it sees simulated ones as unknown."""
        super().__init__({})
        self._provider = provider
        self._calls = calls

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        """As the provider's, which adds nothing new to what the program has not changed."""
        hidden = {k: v for k, v in news.items() if self._calls and is_simulated(v)}
        result = self._provider.check(urn, olds, {**news, **dict.fromkeys(hidden, UNKNOWN)})
        same = bool(olds) and all(key in olds and olds[key] == value for key, value in news.items())
        added = {k: v for k, v in olds.items() if same and k in result.inputs and k not in news}
        return replace(result, inputs={**result.inputs, **added, **hidden})

    def diff(self, request: DiffRequest) -> DiffResult:
        """What the provider replaces, and whether nothing differs; whether something differs is decided by the inputs.

        Otherwise a provider that reports a difference for equal inputs would report it in every run.
        """
        answer = self._provider.diff(request)
        return replace(answer, changed=False if answer.changed is False else None)


def _marked(outputs: PropertyMap) -> PropertyMap:
    return {**outputs, SIMULATED: True}
