"""The recorder: stands in for the providers of clouds that cannot run here, and for what lives in a recorded cluster.

It makes nothing and asks nobody. A preview shows the inputs, and whatever the cloud would answer is unknown; an update
keeps the resource with simulated outputs (the rules: `recorder_values`), which say so by `__simulated`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from local.engine.providers import recorder_functions
from local.engine.providers.provider import (
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    Provider,
    ReadResult,
    UpdateRequest,
)
from local.engine.providers.provider_inputs import default_tags_of
from local.engine.providers.recorder_values import Place, id_of, outputs_of, previewed
from local.engine.providers.secret_texts import hidden
from local.engine.stack.resource import SIMULATED
from local.engine.urn import type_of
from local.engine.values import UNKNOWN, PropertyMap, without_secrets

_DEFAULT_REGION: Final = "simulated-1"


class Recorder:
    """Every resource of one provider instance. `check` completes nothing: no schema is here."""

    accepts_secrets = True
    supports_preview = True

    def __init__(self, config: PropertyMap) -> None:
        """`config`: the provider's inputs, of which the region and the default tags show in outputs.

        Raises ProviderError for default tags that cannot be read.
        """
        plain = without_secrets(config)
        region = plain.get("region")
        self._place = Place(region if isinstance(region, str) else _DEFAULT_REGION, default_tags_of(plain))

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        """Nothing: one recorder is as good as another."""
        del config
        return ()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        del urn, olds
        return CheckResult(news)

    def diff(self, request: DiffRequest) -> DiffResult:
        """Of a type that the provider of `aws` here has, its word on what is replaced; else the engine compares inputs.

        What the real provider would replace is not known then: it is an update here.
        """
        # Imported on use: boto3 takes its time.
        from local.aws.provider.comparison import compare
        from local.aws.provider.kinds import KINDS

        kind = KINDS.get(type_of(request.urn))
        return compare(kind, request) if kind else DiffResult(None)

    def create(self, request: CreateRequest) -> CreateResult:
        urn, inputs = request.urn, request.inputs
        if request.preview:
            return CreateResult("", _marked(previewed(urn, inputs)))
        made = id_of(urn, inputs)
        return CreateResult(made, self._simulated(urn, made, inputs))

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        """What the state has; of somebody else's object simulated outputs. Its inputs nobody knows: no import."""
        if SIMULATED in outputs:
            return ReadResult(id, outputs)
        return ReadResult(id, self._simulated(urn, id, inputs))

    def update(self, request: UpdateRequest) -> PropertyMap:
        if request.preview:
            return _marked(previewed(request.urn, request.news))
        return self._simulated(request.urn, request.id, request.news)

    def delete(self, request: DeleteRequest) -> None:
        """Nothing is there."""
        del request

    def invoke(self, token: str, args: PropertyMap) -> PropertyMap:
        """A provider function's simulated answer. Raises ProviderError for one that has none."""
        return recorder_functions.answer(token, args, self._place)

    def close(self) -> None:
        """Nothing is open."""

    def _simulated(self, urn: str, id: str, inputs: PropertyMap) -> PropertyMap:
        return _marked(hidden(outputs_of(urn, id, inputs, self._place), inputs))


class StandIn(Recorder):
    """Resources of a package that does run here, which are made of simulated values: checked, then only recorded.

    The provider sees its `hidden` inputs as unknown, for it might go and look where they point to.
    """

    def __init__(self, provider: Provider, hidden: Collection[str]) -> None:
        super().__init__({})
        self._provider = provider
        self._hidden = frozenset(hidden)

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        result = self._provider.check(urn, olds, self._hide(news))
        kept = {k: v for k, v in news.items() if k in self._hidden}
        return replace(result, inputs={**result.inputs, **kept})

    def diff(self, request: DiffRequest) -> DiffResult:
        """The provider's word on what is replaced, and that nothing differs; that something does, the inputs say.

        A provider that has something to do even where they do not would have to do it in every run.
        """
        answer = self._provider.diff(request)
        return replace(answer, changed=False if answer.changed is False else None)

    def _hide(self, values: PropertyMap) -> PropertyMap:
        return {k: UNKNOWN if k in self._hidden else v for k, v in values.items()}


def _marked(outputs: PropertyMap) -> PropertyMap:
    return {**outputs, SIMULATED: True}
