"""The recorder's ids and outputs: by a few rules, from the URN, the inputs and the SDK's own types. Pure.

- An id consists of `simulated` and a digest of URN and inputs; where something checks its form, of the cloud's prefix
  and the digest (`Rules.prefixes`). A Kubernetes object has its own (NAMESPACE/NAME); a resource whose id is its name
  in the real cloud has its name (`Rules.named`).
- An output with the name of an input has the input's value. Of the others, those that the SDK's class declares as
  always present have a value of their type: false, 0, a text; an object with all its fields, a list of one object, or
  an empty one.
- A text is what the package's rules say; else by its name a host under `.invalid` (which no resolver knows), an address
  for documentation (RFC 5737), a base64 `data`, else `simulated-` and a digest.
- A Service of type LoadBalancer has a host name under `.invalid`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from pulumi import Output, _types
from pulumi.runtime import rpc

from local.plugins.provider import DiffRequest, DiffResult
from local.plugins.urn import name_of, type_of
from local.plugins.values import UNKNOWN, PropertyMap, Secret, Value, has_secrets, has_unknowns, without_secrets
from local.plugins.wire import mask

ACCOUNT: Final = "000000000000"
DOMAIN: Final = "simulated.invalid"
_IMPORTING: Final = threading.Lock()
"""SDKs load their modules lazily, which two threads cannot do at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """The region of a provider instance's resources, and the tags that it adds to them."""

    region: str
    tags: Mapping[str, str] = field(default_factory=dict)


Function = Callable[[PropertyMap, Place], PropertyMap]
"""Answers a provider function from its arguments."""


def _no_text(kind: str, key: str, id: str, place: Place) -> str | None:
    del kind, key, id, place
    return None


def _any_difference(request: DiffRequest) -> DiffResult:
    del request
    return DiffResult(None)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a package's provider does that neither inputs nor SDK classes show; the defaults fit any package."""

    named: frozenset[str] = frozenset()
    """The types whose id is their name in the cloud, and which other resources refer to by it."""

    prefixes: Mapping[str, str] = field(default_factory=dict)
    """What the cloud's ids of a type begin with, where something checks their form."""

    within: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """What the cloud adds inside an input that is an object: by type, the input and the fields."""

    text: Callable[[str, str, str, Place], str | None] = _no_text
    """The value of a text output, from the resource's type, the output's name and the id; None: by the common rules."""

    functions: Mapping[str, Function] = field(default_factory=dict)
    """The provider functions with a simulated answer, by token."""

    compare: Callable[[DiffRequest], DiffResult] = _any_difference
    """What differs, and what of it replaces the resource; by default the engine compares inputs: all are updates."""


def id_of(urn: str, inputs: PropertyMap, rules: Rules) -> str:
    """The id of a recorded resource."""
    kind, plain = type_of(urn), without_secrets(inputs)
    if kind.startswith("kubernetes:"):
        metadata = plain.get("metadata") or {}
        namespace, name = metadata.get("namespace"), metadata.get("name") or name_of(urn)
        return f"{namespace}/{name}" if namespace else str(name)
    if kind in rules.named:
        return _name_of(name_of(urn), urn, plain)
    # Ids are public: no secret goes into them.
    made_of = (urn, json.dumps(mask(inputs), sort_keys=True))
    return f"{rules.prefixes[kind]}{_digest(*made_of)}" if kind in rules.prefixes else simulated_text(*made_of)


def outputs_of(urn: str, id: str, inputs: PropertyMap, place: Place, rules: Rules) -> PropertyMap:
    """All outputs of a recorded resource; they change with the inputs, the id stays."""
    kind = type_of(urn)
    if kind.startswith("kubernetes:"):
        return _of_kubernetes(urn, inputs)
    facts = _Facts(kind, name_of(urn), id, place, without_secrets(inputs), rules)
    made = {key: facts.value(key, hint) for key, hint in _declared(kind).items() if key not in inputs}
    outputs = {k: v for k, v in made.items() if v is not None} | inputs
    if kind in rules.within:
        holder, fields = rules.within[kind]
        added = {name: facts.text(f"{holder}.{name}") for name in fields}
        outputs[holder] = completed(outputs.get(holder), added)
    if "tagsAll" in outputs:
        given = without_secrets(inputs.get("tags") or {})
        outputs["tagsAll"] = {**place.tags, **given} if isinstance(given, dict) else given
    return outputs


def previewed(urn: str, inputs: PropertyMap, rules: Rules) -> PropertyMap:
    """The outputs that a preview knows: the inputs. The program sees all others as unknown."""
    holder, fields = rules.within.get(type_of(urn), ("", ()))
    if not holder or holder not in inputs:
        return inputs
    return {**inputs, holder: completed(inputs[holder], dict.fromkeys(fields, UNKNOWN))}


def completed(value: Value, added: Mapping[str, Value]) -> Value:
    """An object, secret or not, with the fields that it lacks; any other value as it is."""
    if isinstance(value, Secret):
        return Secret(completed(value.value, added))
    return {**added, **value} if isinstance(value, dict) else value


def simulated_text(*of: str) -> str:
    """A text that is recognizably simulated, the same for the same arguments."""
    return f"simulated-{_digest(*of)}"


def simulated_config(config: PropertyMap) -> PropertyMap:
    """A provider's configuration in which what is unknown is simulated."""

    def known(key: str, value: Value) -> Value:
        text = simulated_text("config", key)
        return Secret(text) if has_secrets(value) else text

    return {key: known(key, value) if has_unknowns(value) else value for key, value in config.items()}


def is_simulated(value: Value) -> bool:
    """Whether a value holds a simulated text or id."""
    return _SIMULATED.search(json.dumps(mask(without_secrets(value)))) is not None


@dataclass(frozen=True, slots=True)
class _Facts:
    kind: str
    subject: str
    id: str
    place: Place
    inputs: PropertyMap
    rules: Rules

    def value(self, path: str, hint: Any, *, optional: bool = False) -> Value:
        """A value of that type; None for an output that may be missing, unless `optional`."""
        kind, required = _unwrapped(hint)
        if not (required or optional):
            return None
        origin = typing.get_origin(kind)
        if kind is bool:
            return False
        if kind in (int, float):
            return 0
        if origin is not None:
            items = typing.get_args(kind)
            if len(items) == 1 and isinstance(items[0], type) and _types.is_output_type(items[0]):
                return [self._object(path, items[0])]
            return {} if len(items) == 2 else []
        if isinstance(kind, type) and _types.is_output_type(kind):
            return self._object(path, kind)
        return self.text(path)

    def _object(self, path: str, cls: type) -> Value:
        fields = _types._raw_return_hints(cls)
        return {key: self.value(f"{path}.{key}", hint, optional=True) for key, hint in fields.items()}

    def text(self, path: str) -> str:
        key = path.rpartition(".")[2]
        lower, digest = key.lower(), _digest(self.id, path)
        if key == "id":
            return self.id
        if key == "region":
            return self.place.region
        if key == "name":
            return self.id if self.kind in self.rules.named else _name_of(self.subject, self.id, self.inputs)
        if (text := self.rules.text(self.kind, key, self.id, self.place)) is not None:
            return text
        if lower.endswith(("endpoint", "url", "issuer")):
            return f"https://{digest}.{DOMAIN}"
        if lower.endswith(("dnsname", "hostname", "fqdn", "domain")):
            return f"{digest}.{DOMAIN}"
        if lower.endswith(("publicip", "ipaddress")):
            return f"203.0.113.{int(digest, 16) % 254 + 1}"
        if lower.endswith("privateip"):
            return f"192.0.2.{int(digest, 16) % 254 + 1}"
        if key == "data":
            return base64.b64encode(b"simulated").decode()
        if lower.endswith("ownerid") or lower == "accountid":
            return ACCOUNT
        return f"simulated-{digest}"


def _of_kubernetes(urn: str, inputs: PropertyMap) -> PropertyMap:
    plain = without_secrets(inputs)
    digest = _digest(urn)
    outputs = dict(inputs)
    metadata = inputs.get("metadata")
    if isinstance(metadata, dict):
        outputs["metadata"] = {**metadata, "uid": f"simulated-{digest}"}
    if type_of(urn) == "kubernetes:core/v1:Service" and (plain.get("spec") or {}).get("type") == "LoadBalancer":
        outputs["status"] = {"loadBalancer": {"ingress": [{"hostname": f"{digest}.{DOMAIN}"}]}}
    return outputs


def _declared(kind: str) -> Mapping[str, Any]:
    """The outputs that the SDK's class of a type declares, with their types; none for a package without one."""
    cls = _class_of(kind)
    if cls is None:
        return {}
    hints = _types._raw_return_hints(cls)
    return {k: v for k, v in hints.items() if k not in ("id", "urn") and not k.startswith("pulumi")}


def _class_of(kind: str) -> type | None:
    """The class by which the program declares resources of the type, as its package has registered it."""
    package_and_module, _, _name = kind.rpartition(":")
    for module in rpc._RESOURCE_MODULES.get(package_and_module, ()):
        # What every generated SDK registers.
        info = getattr(module, "mod_info", {})
        if kind in info.get("classes", {}):
            with _IMPORTING:
                found: type = getattr(import_module(info["fqn"]), info["classes"][kind])
            return found
    return None


def load_sdk(package: str) -> None:
    """Load the package's SDK, whose classes tell the outputs, where the program does not run in this process."""
    with _IMPORTING, suppress(ModuleNotFoundError):
        import_module(f"pulumi_{package.replace('-', '_')}")


def _unwrapped(hint: Any) -> tuple[Any, bool]:
    """The type inside Output and Optional, and whether there always is a value."""
    inner = typing.get_args(hint)[0] if typing.get_origin(hint) is Output else hint
    kind = _types.unwrap_optional_type(inner)
    return kind, kind is inner


def _name_of(subject: str, id: str, plain: PropertyMap) -> str:
    """The name in the cloud: what the inputs say, else one as Pulumi draws it, but always the same."""
    given = plain.get("name")
    if isinstance(given, str):
        return given
    return f"{plain.get('namePrefix') or subject + '-'}{_digest(id)[-7:]}"


_MARK: Final = "5111a7ed"
"""Hexadecimal digits that read "simulated": an id whose form a cloud prescribes shows it, too."""
_SIMULATED: Final = re.compile(rf"{_MARK}[0-9a-f]{{9}}")


def _digest(*texts: str) -> str:
    return _MARK + hashlib.sha256("\n".join(texts).encode()).hexdigest()[:9]
