"""The recorder's ids and outputs: by a few rules, from the URN, the inputs and the SDK's own types. Pure.

- An id holds `simulated` and a digest of URN and inputs; a Kubernetes object has its own (NAMESPACE/NAME), and what has
  a `name` that is its id in the real cloud, that (`_NAMED`).
- An output that the inputs give is what they say. Of the others, those that the SDK's class declares as always there
  have a value of their type: false, 0, a text; an object with all its fields, a list of one object, or empty.
- A text is by its name an ARN of account 000000000000, a host under `.invalid` (which no resolver knows), an address
  for documentation (RFC 5737), a base64 `data`, else `simulated-` and a digest.
- A Service of type LoadBalancer has a host name under `.invalid`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from pulumi import Output, _types
from pulumi.runtime import rpc

from local.engine.stack.resource import mask
from local.engine.urn import name_of, type_of
from local.engine.values import UNKNOWN, PropertyMap, Secret, Value, without_secrets

ACCOUNT: Final = "000000000000"
DOMAIN: Final = "simulated.invalid"

_NAMED: Final = frozenset(
    {
        "aws:autoscaling/group:Group",
        "aws:eks/cluster:Cluster",
        "aws:iam/instanceProfile:InstanceProfile",
        "aws:iam/role:Role",
    }
)
"""Types whose id is their name in AWS, too, and is used as that by what refers to them."""

_WITHIN: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "aws:eks/cluster:Cluster": ("vpcConfig", ("clusterSecurityGroupId", "vpcId")),
}
"""What the cloud adds inside of an object that is an input: by type, the input and the fields."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a provider instance makes things, and the tags that it gives them."""

    region: str
    tags: Mapping[str, str] = field(default_factory=dict)


def id_of(urn: str, inputs: PropertyMap) -> str:
    """The id of a resource that is only recorded."""
    kind, plain = type_of(urn), without_secrets(inputs)
    if kind.startswith("kubernetes:"):
        metadata = plain.get("metadata") or {}
        namespace, name = metadata.get("namespace"), metadata.get("name") or name_of(urn)
        return f"{namespace}/{name}" if namespace else str(name)
    if kind in _NAMED:
        return _name_of(name_of(urn), urn, plain)
    # An id is for everybody to see: nothing of a secret goes into it.
    return simulated_text(urn, json.dumps(mask(inputs), sort_keys=True))


def outputs_of(urn: str, id: str, inputs: PropertyMap, place: Place) -> PropertyMap:
    """All outputs of a resource that is only recorded; they change with the inputs, the id stays."""
    kind = type_of(urn)
    if kind.startswith("kubernetes:"):
        return _of_kubernetes(urn, inputs)
    facts = _Facts(kind, name_of(urn), id, place, without_secrets(inputs))
    made = {key: facts.value(key, hint) for key, hint in _declared(kind).items() if key not in inputs}
    outputs = {k: v for k, v in made.items() if v is not None} | inputs
    if kind in _WITHIN:
        holder, fields = _WITHIN[kind]
        added = {name: facts.text(f"{holder}.{name}") for name in fields}
        outputs[holder] = completed(outputs.get(holder), added)
    if "tagsAll" in outputs:
        given = without_secrets(inputs.get("tags") or {})
        outputs["tagsAll"] = {**place.tags, **given} if isinstance(given, dict) else given
    return outputs


def previewed(urn: str, inputs: PropertyMap) -> PropertyMap:
    """The outputs as far as a preview knows them: the inputs. What is left out is unknown to the program."""
    holder, fields = _WITHIN.get(type_of(urn), ("", ()))
    if not holder or holder not in inputs:
        return inputs
    return {**inputs, holder: completed(inputs[holder], dict.fromkeys(fields, UNKNOWN))}


def completed(value: Value, added: Mapping[str, Value]) -> Value:
    """An object, secret or not, with the fields that it lacks; what is none stays as it is."""
    if isinstance(value, Secret):
        return Secret(completed(value.value, added))
    return {**added, **value} if isinstance(value, dict) else value


def simulated_text(*of: str) -> str:
    """A text that says that it is simulated, always the same for the same."""
    return f"simulated-{_digest(*of)}"


@dataclass(frozen=True, slots=True)
class _Facts:
    kind: str
    subject: str
    id: str
    place: Place
    inputs: PropertyMap

    def value(self, path: str, hint: Any, *, optional: bool = False) -> Value:
        """A value of that type; None for what may be missing, unless `optional` values are wanted, too."""
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
            return self.id if self.kind in _NAMED else _name_of(self.subject, self.id, self.inputs)
        if lower.endswith("arn"):
            module = self.kind.partition(":")[2].partition("/")[0]
            return f"arn:aws:{module}:{self.place.region}:{ACCOUNT}:{self.id}"
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
            found: type = getattr(import_module(info["fqn"]), info["classes"][kind])
            return found
    return None


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
    return f"{plain.get('namePrefix') or subject + '-'}{_digest(id)[:7]}"


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
