"""What Alibaba Cloud's official SDK says of an action: its parameters, their place and types, and its answer's shape.

The SDK is read as text, never imported: the models of one product take seconds to import, an action's files a few
milliseconds to parse, and only the actions that are called are parsed.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
"""A JSON schema; of the subset that `local.standin.shapes` compiles."""

_PLAIN = {"str": "string", "int": "integer", "bool": "boolean", "float": "number"}
_IMPORT = re.compile(r"^from \.(\w+) import (\w+)$", re.MULTILINE)
_REQUIRED = re.compile(r"# This parameter is required\.\n(?:\s*#[^\n]*\n)*\s*self\.(\w+) =")
_PLACED = re.compile(r"^ +(query|body|query_flat|body_flat)\['(\w+)'\] =", re.MULTILINE)


class UnknownAction(LookupError):
    """The SDK has no such action."""


@dataclass(frozen=True, slots=True)
class _Model:
    fields: dict[str, ast.expr]
    """The type of each attribute."""
    wire: dict[str, str]
    """The name on the wire of each attribute."""
    required: frozenset[str]
    """The attributes whose comment says so; the SDK does not say it of all that are."""


class Sdk:
    """The package of one product."""

    def __init__(self, package: str) -> None:
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(f"the SDK package {package} is not installed (pip install '.[local]')")
        self._folder = Path(spec.submodule_search_locations[0])
        listing = (self._folder / "models" / "__init__.py").read_text()
        self._files = {name: f"{module}.py" for module, name in _IMPORT.findall(listing)}
        self._models: dict[str, _Model] = {}

    def require(self, action: str) -> None:
        """Raise UnknownAction unless the SDK has the action."""
        if f"{action}ResponseBody" not in self._files:
            raise UnknownAction(f"{self._folder.name} has no action {action}")

    def request_schema(self, action: str) -> Schema:
        """Of an action's parameters, nested as the SDK's models are."""
        if f"{action}Request" not in self._files:
            return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        return self._schema(f"{action}Request", is_request=True)

    def answer_schema(self, action: str) -> Schema:
        """Of an action's answer."""
        return self._schema(f"{action}ResponseBody", is_request=False)

    def as_json(self, action: str) -> frozenset[str]:
        """The parameters that the SDK sends as one JSON text, and not flattened."""
        if f"{action}ShrinkRequest" not in self._files:
            return frozenset()
        nested = self.request_schema(action)["properties"]
        sent = self._schema(f"{action}ShrinkRequest", is_request=True)["properties"]
        return frozenset(name for name, schema in sent.items() if schema != nested[name])

    def in_form(self, action: str) -> frozenset[str]:
        """The parameters that the SDK sends in the form; it sends all others in the query."""
        source = self._methods.get(action, "")
        return frozenset(name for place, name in _PLACED.findall(source) if place.startswith("body"))

    @functools.cached_property
    def _methods(self) -> dict[str, str]:
        """The source of the method of each action, by the action that it names."""
        text = (self._folder / "client.py").read_text()
        methods = re.split(r"^    (?:async )?def ", text, flags=re.MULTILINE)
        named = ((re.search(r"action = '(\w+)'", method), method) for method in methods)
        return {match[1]: method for match, method in named if match is not None}

    def _schema(self, name: str, *, is_request: bool) -> Schema:
        model = self._model(name)
        return {
            "type": "object",
            "properties": {
                model.wire[attribute]: self._of_type(hint, is_request) for attribute, hint in model.fields.items()
            },
            "required": sorted(model.wire[attribute] for attribute in model.required) if is_request else [],
            "additionalProperties": False,
        }

    def _of_type(self, hint: ast.expr, is_request: bool) -> Schema:
        if isinstance(hint, ast.Name):
            return {"type": _PLAIN[hint.id]} if hint.id in _PLAIN else {}
        if isinstance(hint, ast.Attribute):  # main_models.X
            return self._schema(hint.attr, is_request=is_request)
        if isinstance(hint, ast.Subscript) and isinstance(hint.value, ast.Name):
            if hint.value.id == "List":
                return {"type": "array", "items": self._of_type(hint.slice, is_request)}
            if hint.value.id == "Dict" and isinstance(hint.slice, ast.Tuple):
                return {"type": "object", "additionalProperties": self._of_type(hint.slice.elts[1], is_request)}
        raise NotImplementedError(f"{self._folder.name}: type {ast.unparse(hint)}")

    def _model(self, name: str) -> _Model:
        if name not in self._models:
            source = (self._folder / "models" / self._files[name]).read_text()
            lines = source.splitlines(keepends=True)
            for node in ast.parse(source).body:
                if isinstance(node, ast.ClassDef):
                    self._models[node.name] = _read(node, lines)
        return self._models[name]


def _read(node: ast.ClassDef, lines: list[str]) -> _Model:
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    arguments = methods["__init__"].args.args[1:]
    fields = {each.arg: each.annotation for each in arguments if each.annotation is not None}
    made = "".join(lines[methods["__init__"].lineno : methods["__init__"].end_lineno])
    return _Model(fields, _wire_names(methods["to_map"]), frozenset(_REQUIRED.findall(made)))


def _wire_names(to_map: ast.FunctionDef) -> dict[str, str]:
    """Each attribute's key, from the branches `if self.ATTRIBUTE is not None: result['KEY'] = …`."""
    names: dict[str, str] = {}
    for branch in to_map.body:
        if not isinstance(branch, ast.If) or not isinstance(branch.test, ast.Compare):
            continue
        tested = branch.test.left
        if isinstance(tested, ast.Attribute):
            keys = [
                each.slice.value
                for each in ast.walk(branch)
                if isinstance(each, ast.Subscript)
                and isinstance(each.value, ast.Name)
                and each.value.id == "result"
                and isinstance(each.slice, ast.Constant)
            ]
            names[tested.attr] = str(keys[0])
    return names
