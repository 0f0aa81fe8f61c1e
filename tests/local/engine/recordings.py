"""Recordings of the real CLI: its requests and their answers, and a provider that answers from them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.engine.stack.resource import decode, encode
from local.plugins.provider import (
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
from local.plugins.values import PropertyMap

SAMPLES = Path(__file__).parent / "samples"
RECORDINGS = SAMPLES / "recordings"
SIGNATURE, SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
CUT_SHORT = ("10-policy-violation", "11-policy-violation-up")
"""The CLI stopped during these: later requests of ours are allowed."""
SALT = "v1:rYQeAYN4PdY=:v1:nOLX8j85G3iqP9Un:4pAdZY0YbZY4lPlFIvps9VF2dowiZw=="
PASSPHRASE = "sample-passphrase"
"""Of the recorded stack. Most stacks under test use it: deriving a key takes half a second."""

# What differs between two runs, or is only in the CLI's requests.
_IRRELEVANT = {"randomSeed", "timeout", "acceptResources", "acceptSecrets"}


@dataclass(frozen=True, slots=True)
class Call:
    """A finished call, in the order of their ends; the method as in `ResourceProvider/Check`."""

    method: str
    request: Any
    response: Any = None

    @property
    def urn(self) -> str:
        """Its resource, also where the request does not have the URN yet; "" for none."""
        return str(self.request.get("urn") or (self.response or {}).get("urn") or "")


class Recording:
    """The calls of one run of the real CLI."""

    def __init__(self, name: str) -> None:
        lines = (RECORDINGS / f"{name}.jsonl").read_text().splitlines()
        self.calls = [Call(c["method"], c["request"] or {}, c["response"]) for c in map(json.loads, lines)]
        self.cut_short = name in CUT_SHORT
        self.exit_code = _exit_codes()[name]

    def find(self, method: str) -> list[Call]:
        return [c for c in self.calls if c.method == method]

    def answer(self, method: str, urn: str, **expected: Any) -> dict[str, Any]:
        """The recorded answer to a request with these values; there must be one."""
        asked = [c for c in self.find(f"ResourceProvider/{method}") if c.urn == urn]
        for call in asked:
            if all(canonical(call.request.get(k) or {}) == canonical(v or {}) for k, v in expected.items()):
                return dict(call.response or {})
        if self.cut_short:
            raise ProviderError(f"{method} of {urn} was not recorded")
        raise AssertionError(f"the CLI asked no {method} of {urn} with {expected}, but {[c.request for c in asked]}")


def _exit_codes() -> dict[str, int]:
    lines = (RECORDINGS / "exit-codes.txt").read_text().splitlines()
    return {name: int(code) for name, _, code in (line.split() for line in lines)}


def canonical(value: Any) -> Any:
    """Equal for equivalent values: what differs between two runs, and empty fields, are removed."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {
            k: c
            for k, v in sorted(value.items())
            if k not in _IRRELEVANT and (c := canonical(v)) not in ({}, [], "", None, False)
        }
    if isinstance(value, list | tuple):
        return [canonical(v) for v in value]
    # The provider's version is that of the installed SDK.
    return "VERSION" if isinstance(value, str) and re.fullmatch(r"4\.\d+\.\d+", value) else value


def as_texts(values: Sequence[Any]) -> list[str]:
    """Sorted, for a comparison in any order."""
    return sorted(json.dumps(canonical(v), sort_keys=True) for v in values)


class PlainCrypter:
    """Writes secrets readably, for comparison."""

    def encrypt(self, plaintext: str) -> str:
        return plaintext

    def decrypt(self, ciphertext: str) -> str:
        return ciphertext


def unwrap(value: Any) -> Any:
    """The wire's secrets as the state writes them."""
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return {SIGNATURE: SECRET, "ciphertext": json.dumps(value["value"])}
        return {k: unwrap(v) for k, v in value.items()}
    return [unwrap(v) for v in value] if isinstance(value, list) else value


def rewrap(value: Any) -> Any:
    """The engine's values as the wire writes them."""

    def back(data: Any) -> Any:
        if isinstance(data, dict):
            if data.get(SIGNATURE) == SECRET:
                return {SIGNATURE: SECRET, "value": json.loads(data["ciphertext"])}
            return {k: back(v) for k, v in data.items()}
        return [back(v) for v in data] if isinstance(data, list) else data

    return back(encode(value, PlainCrypter()))


def values_of(data: Any) -> PropertyMap:
    """The wire's JSON as the engine's values."""
    return dict(decode(unwrap(data or {}), PlainCrypter()))


class RecordedKubernetes:
    """A provider that returns the real one's answers, and fails on a request that the CLI never made."""

    accepts_secrets = True
    supports_preview = True

    def __init__(self, recording: Recording, calls: list[Call]) -> None:
        self._recording = recording
        self._calls = calls

    def _ask(self, method: str, urn: str, **expected: Any) -> dict[str, Any]:
        answer = self._recording.answer(method, urn, **expected)
        self._calls.append(Call(f"ResourceProvider/{method}", {"urn": urn, **expected}, answer))
        return answer

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        del config
        return ()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        return CheckResult(values_of(self._ask("Check", urn, olds=rewrap(olds), news=rewrap(news))["inputs"]))

    def diff(self, request: DiffRequest) -> DiffResult:
        olds = {"oldInputs": rewrap(request.old_inputs), "olds": rewrap(request.old_outputs)}
        answer = self._ask("Diff", request.urn, id=request.id, **olds, news=rewrap(request.news))
        detailed = {
            path: PropertyDiff(DiffKind(str(d.get("kind", "ADD")).lower().replace("_", "-")), bool(d.get("inputDiff")))
            for path, d in (answer.get("detailedDiff") or {}).items()
        }
        return DiffResult(
            answer["changes"] == "DIFF_SOME",
            tuple(answer.get("replaces") or ()),
            tuple(answer.get("diffs") or ()),
            detailed,
            bool(answer.get("deleteBeforeReplace")),
        )

    def create(self, request: CreateRequest) -> CreateResult:
        answer = self._ask("Create", request.urn, properties=rewrap(request.inputs), preview=request.preview)
        return CreateResult(answer.get("id", ""), values_of(answer["properties"]))

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        answer = self._ask("Read", urn, id=id, inputs=rewrap(inputs), properties=rewrap(outputs))
        return ReadResult(answer["id"], values_of(answer["properties"]), values_of(answer["inputs"]))

    def update(self, request: UpdateRequest) -> PropertyMap:
        raise AssertionError(f"the CLI updated nothing of Kubernetes, here {request.urn}")

    def delete(self, request: DeleteRequest) -> None:
        olds = {"oldInputs": rewrap(request.inputs), "properties": rewrap(request.outputs)}
        self._ask("Delete", request.urn, id=request.id, **olds)

    def close(self) -> None:
        pass
