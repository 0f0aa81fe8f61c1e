"""Pulumi's verbs for the types in `kinds`: what is alike for all of them."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from local.engine import paths
from local.engine.differences import differences
from local.engine.providers.aws import functions
from local.engine.providers.aws.api import Api, AwsError, Deadline, TimedOut
from local.engine.providers.aws.kind import Change, Creation, Kind, NotReady, same_document
from local.engine.providers.aws.kinds import KINDS, RECORDED
from local.engine.providers.provider import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    OutcomeUnknown,
    PartialFailure,
    ProviderError,
    ReadResult,
    Report,
)
from local.engine.providers.recorder import Recorder, default_tags_of
from local.engine.urn import name_of, type_of
from local.engine.values import UNKNOWN, PropertyMap, Secret, Value, has_unknowns, without_secrets

_SHORTEST_SECRET = 6


class AwsProvider:
    """One configured instance; it may be used from many threads."""

    accepts_secrets = False
    supports_preview = True
    recorded_types = RECORDED

    def __init__(self, config: PropertyMap) -> None:
        """`config`: the provider's inputs. Raises ProviderError."""
        plain = without_secrets(config)
        self._api = Api(plain)
        self._default_tags = default_tags_of(plain)
        self.recorder = Recorder(config)

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        """`region`, if that is another one; another port of the simulator is not another cloud."""
        region = without_secrets(config).get("region")
        return ("region",) if region != self._api.region else ()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap, *, preview: bool) -> CheckResult:
        del preview
        kind = KINDS.get(type_of(urn))
        if kind is None:
            known = ", ".join(sorted(KINDS))
            return CheckResult(news, (CheckFailure("", f"the embedded engine's provider does not have it; {known}"),))
        failures = [
            CheckFailure(
                key, f"is not known to the embedded engine's provider; known: {', '.join(sorted(kind.inputs))}"
            )
            for key in news
            if key not in kind.inputs
        ]
        failures += [CheckFailure(key, "is missing") for key in sorted(kind.required - news.keys())]
        inputs = {**{k: v for k, v in kind.defaults.items() if k not in news}, **news}
        if kind.autonamed and "name" not in inputs:
            inputs["name"] = olds.get("name") or _drawn_name(name_of(urn), inputs)
        if kind.taggable and self._default_tags and isinstance(inputs.get("tags", {}), dict):
            inputs["tags"] = {**self._default_tags, **inputs.get("tags", {})}
        return CheckResult(inputs, tuple(failures))

    def diff(
        self,
        urn: str,
        id: str,
        old_inputs: PropertyMap,
        old_outputs: PropertyMap,
        news: PropertyMap,
        ignore_changes: Sequence[str],
    ) -> DiffResult:
        del id, old_outputs
        kind = _kind(urn)
        olds, plain = without_secrets(old_inputs), without_secrets(news)
        same = {k for k in kind.documents if k in olds and k in plain and same_document(olds[k], plain[k])}
        same |= {k for k in olds.keys() & plain.keys() if _reordered(olds[k], plain[k])}
        detailed = {p: d for p, d in differences(old_inputs, news).items() if _key(p) not in same}
        ignored = [paths.parse(p) for p in ignore_changes]
        detailed = {p: d for p, d in detailed.items() if not any(paths.holds(i, paths.parse(p)) for i in ignored)}
        replaces = kind.replaced_by(olds, plain)
        detailed = {p: replace(d, kind=d.kind.replacing) if _key(p) in replaces else d for p, d in detailed.items()}
        replacing = tuple(p for p in detailed if _key(p) in replaces)
        return DiffResult(bool(detailed), replacing, detailed=detailed, delete_before_replace=kind.delete_first)

    def create(self, urn: str, inputs: PropertyMap, *, preview: bool, timeout: float, report: Report) -> CreateResult:
        kind, plain = _kind(urn), without_secrets(inputs)
        if preview:
            return CreateResult("", _shown(kind, plain))
        creation = Creation(plain, _token(urn, plain), _deadline(kind, timeout, report))
        with _told(inputs):
            try:
                made = kind.make(self._api, creation)
            except NotReady as error:
                outputs = kind.read(self._api, error.id, plain) or {}
                raise PartialFailure(str(error), error.id, {**plain, **outputs}) from None
            outputs = kind.read(self._api, made, plain) or {}
            if not outputs:
                raise OutcomeUnknown(f"{made} was made, and is not there")
        return CreateResult(made, {**plain, **outputs})

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        kind, plain = _kind(urn), without_secrets(inputs)
        with _told(inputs):
            found = kind.read(self._api, id, without_secrets(outputs) or plain)
        if found is None:
            return ReadResult(None, {})
        if not inputs:
            return ReadResult(id, found, {k: v for k, v in found.items() if k in kind.inputs and _says(kind, k, v)})
        keys = {*plain, *({"tags"} if kind.taggable else ())}
        read = {k: _as_known(kind, k, plain.get(k), found.get(k, plain.get(k))) for k in keys}
        if kind.taggable and "tags" not in found and "tags" in plain:
            read["tags"] = {}
        return ReadResult(id, {**plain, **found}, {k: v for k, v in read.items() if v is not None})

    def update(
        self,
        urn: str,
        id: str,
        old_inputs: PropertyMap,
        old_outputs: PropertyMap,
        news: PropertyMap,
        *,
        preview: bool,
        timeout: float,
        ignore_changes: Sequence[str],
        report: Report,
    ) -> PropertyMap:
        del ignore_changes
        kind = _kind(urn)
        olds, plain = without_secrets(old_inputs), without_secrets(news)
        if preview:
            return {**_kept(kind, without_secrets(old_outputs)), **plain}
        changed = frozenset(k for k in {*olds, *plain} if olds.get(k) != plain.get(k))
        with _told(news):
            try:
                kind.change(self._api, id, Change(olds, plain, changed, _deadline(kind, timeout, report)))
            except NotReady as error:
                raise PartialFailure(str(error), id, {**plain, **(kind.read(self._api, id, plain) or {})}) from None
            found = kind.read(self._api, id, plain)
        if found is None:
            raise ProviderError(f"{id} is gone: run `refresh`, then `up` makes it anew")
        return {**plain, **found}

    def delete(
        self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap, *, timeout: float, report: Report
    ) -> None:
        kind = _kind(urn)
        with _told(inputs):
            try:
                kind.remove(self._api, id, without_secrets(outputs), _deadline(kind, timeout, report))
            except AwsError as error:
                if not error.missing:
                    raise

    def invoke(self, token: str, args: PropertyMap) -> PropertyMap:
        """A function's answer. Raises ProviderError, naming those that there are."""
        return functions.answer(self._api, token, without_secrets(args))

    def close(self) -> None:
        """Let go of connections."""
        self._api.close()


def _kind(urn: str) -> Kind:
    try:
        return KINDS[type_of(urn)]
    except KeyError:
        raise ProviderError(f"the embedded engine's provider does not have {type_of(urn)}") from None


def _key(path: str) -> str:
    return str(paths.parse(path)[0])


def _deadline(kind: Kind, timeout: float, report: Report) -> Deadline:
    return Deadline(time.monotonic() + (timeout or kind.timeout), report)


def _token(urn: str, inputs: PropertyMap) -> str:
    text = f"{urn}\n{json.dumps(inputs, sort_keys=True, default=str)}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _drawn_name(name: str, inputs: PropertyMap) -> str:
    prefix = inputs.get("namePrefix")
    return f"{prefix if isinstance(prefix, str) else name + '-'}{secrets.token_hex(4)[:7]}"


def _shown(kind: Kind, inputs: PropertyMap) -> PropertyMap:
    """The outputs in a preview: the inputs; of an object that AWS completes, what it adds is unknown."""
    return {**inputs, **{k: {**v, **inputs[k]} for k, v in kind.within.items() if isinstance(inputs.get(k), dict)}}


def _kept(kind: Kind, outputs: PropertyMap) -> PropertyMap:
    return {k: UNKNOWN if k in kind.moving else v for k, v in outputs.items() if k not in kind.inputs}


def _says(kind: Kind, key: str, value: Value) -> bool:
    """Whether a value says more than that nothing was said: what a program need not repeat to import an object."""
    return bool(value) or key in kind.defaults


def _reordered(old: Value, new: Value) -> bool:
    """Whether two lists hold the same: none of the lists here has an order that means something."""
    if not (isinstance(old, list) and isinstance(new, list)) or has_unknowns(old) or has_unknowns(new):
        return False
    return sorted(map(_text, old)) == sorted(map(_text, new))


def _text(value: Value) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _as_known(kind: Kind, key: str, known: Value, found: Value) -> Value:
    """What was found, in the words of what was known, where it means the same."""
    if key in kind.documents and same_document(known, found):
        return known
    if isinstance(known, dict) and isinstance(found, dict) and key != "tags":
        # Of an object only what the program says is compared: AWS completes the rest.
        return {k: _as_known(kind, "", v, found.get(k, v)) for k, v in known.items()}
    if isinstance(known, list) and isinstance(found, list):
        if _reordered(known, found):
            return known
        if len(known) == len(found) and all(isinstance(i, dict) for i in [*known, *found]):
            return [_as_known(kind, "", k, f) for k, f in zip(known, found, strict=True)]
    return known if _text(known) == _text(found) or str(known).lower() == str(found).lower() else found


@contextmanager
def _told(inputs: PropertyMap) -> Iterator[None]:
    """Take the inputs' secrets out of what AWS says about them."""
    try:
        yield
    except TimedOut as error:
        raise ProviderError(_masked(str(error), inputs)) from None
    except AwsError as error:
        raise ProviderError(_masked(str(error), inputs)) from None


def _masked(message: str, inputs: PropertyMap) -> str:
    for text in _secret_texts(inputs):
        message = message.replace(text, "[secret]")
    return message


def _secret_texts(value: Value, *, secret: bool = False) -> Iterator[str]:
    if isinstance(value, Secret):
        yield from _secret_texts(value.value, secret=True)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _secret_texts(item, secret=secret)
    elif isinstance(value, list):
        for item in value:
            yield from _secret_texts(item, secret=secret)
    elif secret and isinstance(value, str) and len(value) >= _SHORTEST_SECRET:
        yield value
