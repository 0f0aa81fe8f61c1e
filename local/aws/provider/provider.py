"""Pulumi's provider protocol for the types in `kinds`: what they share."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from local.aws.provider import functions
from local.aws.provider.api import Api, AwsError, Deadline
from local.aws.provider.comparison import compare, imported_inputs, read_inputs, said_by_either
from local.aws.provider.kind import Change, Creation, Kind, NotReady, completing
from local.aws.provider.kinds import KINDS, RECORDED
from local.aws.provider.recorded import recorder
from local.plugins import paths
from local.plugins.provider import (
    CheckFailure,
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    PartialFailure,
    ProviderError,
    ReadResult,
    UpdateRequest,
)
from local.plugins.provider_inputs import default_tags_of
from local.plugins.recorder_values import completed
from local.plugins.secret_texts import hidden
from local.plugins.urn import name_of, type_of
from local.plugins.values import UNKNOWN, PropertyMap, without_secrets
from local.plugins.wire import mask


class AwsProvider:
    """One configured instance; it may be used from many threads."""

    accepts_secrets = False
    recorded_types = RECORDED

    def __init__(self, config: PropertyMap) -> None:
        """`config`: the provider's inputs. Raises ProviderError."""
        plain = without_secrets(config)
        self._api = Api(plain)
        self._stop = threading.Event()
        self._default_tags = default_tags_of(plain)
        self.recorder = recorder(config)

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        """`region`, if it differs; another port of the simulator is not another cloud."""
        region = without_secrets(config).get("region")
        return ("region",) if region != self._api.region else ()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        kind = KINDS.get(type_of(urn))
        if kind is None:
            known = ", ".join(sorted(KINDS))
            return CheckResult(
                news, (CheckFailure("", f"this provider of simulators does not have it; it has: {known}"),)
            )
        unknown = f"is not supported against a simulator (supported: {', '.join(sorted(kind.inputs))})"
        failures = [CheckFailure(key, unknown) for key in news if key not in kind.inputs]
        failures += [CheckFailure(key, "is missing") for key in sorted(kind.required - news.keys())]
        inputs = {**{k: v for k, v in kind.defaults.items() if k not in news}, **news}
        if kind.autonamed and "name" not in inputs:
            inputs["name"] = olds.get("name") or _drawn_name(urn, inputs)
        if kind.taggable and self._default_tags:
            inputs["tags"] = completed(inputs.get("tags", {}), self._default_tags)
        return CheckResult(inputs, tuple(failures))

    def diff(self, request: DiffRequest) -> DiffResult:
        return compare(_kind(request.urn), request)

    def create(self, request: CreateRequest) -> CreateResult:
        kind, plain = _kind(request.urn), without_secrets(request.inputs)
        if request.preview:
            return CreateResult("", _shown(kind, plain, {}))
        deadline = self._deadline(kind, request)
        creation = Creation(plain, _token(request.urn, request.inputs), deadline)
        outputs: list[PropertyMap] = []

        def seen() -> bool:
            found = kind.read(self._api, made, plain)
            outputs.extend([found] if found is not None else [])
            return found is not None

        with _keeping(plain):
            made = kind.make(self._api, creation)
            with completing(made):
                # AWS may not show at once what it has made.
                deadline.until(f"{made} to be visible", seen)
        return CreateResult(made, hidden({**plain, **outputs[0]}, request.inputs))

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        kind, plain = _kind(urn), without_secrets(inputs)
        found = kind.read(self._api, id, without_secrets(outputs) or plain)
        if found is None:
            return ReadResult(None, {})
        if not inputs:
            return ReadResult(id, found, imported_inputs(kind, found))
        return ReadResult(id, hidden({**plain, **found}, inputs), read_inputs(kind, plain, found))

    def update(self, request: UpdateRequest) -> PropertyMap:
        kind, plain = _kind(request.urn), without_secrets(request.news)
        olds = without_secrets(request.old_inputs)
        if request.preview:
            return hidden(_previewed(kind, olds, without_secrets(request.old_outputs), plain), request.news)
        with _keeping(plain):
            # Compared with the real object: an interrupted update or unfinished create may have left any state.
            now = self._inputs_now(kind, request.id, said_by_either(olds, plain))
            plain = _without_ignored(plain, now, request.ignore_changes)
            changed = _differing(now, plain)
            deadline = self._deadline(kind, request)
            with completing(request.id):
                kind.change(self._api, request.id, Change(now, plain, frozenset(changed), deadline))
            found = kind.read(self._api, request.id, plain)
        return hidden({**plain, **(found or {})}, request.news)

    def delete(self, request: DeleteRequest) -> None:
        kind, outputs = _kind(request.urn), without_secrets(request.outputs)
        try:
            kind.remove(self._api, request.id, outputs, self._deadline(kind, request))
        except AwsError as error:
            # Something else may be missing: a policy of the role to be deleted.
            if not error.missing or kind.read(self._api, request.id, outputs) is not None:
                raise

    def invoke(self, token: str, args: PropertyMap) -> PropertyMap:
        """A function's answer. Raises ProviderError, which names the supported ones."""
        return functions.answer(self._api, token, without_secrets(args))

    def interrupt(self) -> None:
        """End all waits for AWS, which may take half an hour."""
        self._stop.set()

    def close(self) -> None:
        """Close the connections."""
        self._api.close()

    def _deadline(self, kind: Kind, request: CreateRequest | UpdateRequest | DeleteRequest) -> Deadline:
        return Deadline(time.monotonic() + (request.timeout or kind.timeout), request.report, self._stop)

    def _inputs_now(self, kind: Kind, id: str, inputs: PropertyMap) -> PropertyMap:
        found = kind.read(self._api, id, inputs)
        if found is None:
            raise ProviderError(f"{id} is gone: run `refresh`, after which `up` creates it again")
        return read_inputs(kind, inputs, found)


def _kind(urn: str) -> Kind:
    try:
        return KINDS[type_of(urn)]
    except KeyError:
        raise ProviderError(f"{type_of(urn)} is not supported against a simulator") from None


def _token(urn: str, inputs: PropertyMap) -> str:
    # Tags are readable by all, so they must not contain a secret.
    text = f"{urn}\n{json.dumps(mask(inputs), sort_keys=True, default=str)}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _drawn_name(urn: str, inputs: PropertyMap) -> str:
    """Not random: a create whose answer was lost is repeated with the name that it had."""
    prefix = inputs.get("namePrefix")
    return f"{prefix if isinstance(prefix, str) else name_of(urn) + '-'}{_token(urn, inputs)[:7]}"


def _differing(olds: PropertyMap, news: PropertyMap) -> set[str]:
    return {key for key in {*olds, *news} if olds.get(key) != news.get(key)}


def _without_ignored(news: PropertyMap, now: PropertyMap, ignored: Sequence[str]) -> PropertyMap:
    try:
        return paths.keep_old(news, now, ignored)
    except paths.PathError as error:
        raise ProviderError(str(error)) from None


def _shown(kind: Kind, inputs: PropertyMap, before: PropertyMap) -> PropertyMap:
    """The inputs as a preview's outputs: what AWS adds within them is as `before`, or unknown."""
    completed = {
        key: {**{field: (before.get(key) or {}).get(field, UNKNOWN) for field in fields}, **inputs[key]}
        for key, fields in kind.within.items()
        if isinstance(inputs.get(key), dict)
    }
    return {**inputs, **completed}


def _previewed(kind: Kind, olds: PropertyMap, outputs: PropertyMap, news: PropertyMap) -> PropertyMap:
    """The outputs after an update, as far as they are predictable: those that no input determines stay."""
    moving = kind.moving if _differing(olds, news) - {"tags"} else ()
    said = kind.inputs & {*olds, *news}
    kept = {key: UNKNOWN if key in moving else value for key, value in outputs.items() if key not in said}
    tags: PropertyMap = {"tagsAll": news.get("tags", {})} if kind.taggable else {}
    return {**kept, **_shown(kind, news, outputs), **tags}


@contextmanager
def _keeping(outputs: PropertyMap) -> Iterator[None]:
    """An incomplete object stays in the state, with these outputs."""
    try:
        yield
    except NotReady as error:
        raise PartialFailure(str(error), error.id, outputs) from None
