"""The JSON schema of a stack file, for editors: `python -m components.stack_schema` prints `stacks/schema.json`."""

from __future__ import annotations

import json
from typing import Any

from . import clouds
from .existing_config import EXISTING, KUBECONFIG
from .stack_config import MODEL, NAMESPACE, SECRET_KEYS


def schema() -> dict[str, Any]:
    """The JSON schema of a stack file (`stacks/Pulumi.STACK.yaml`)."""
    config = _without_titles(MODEL.model_json_schema(by_alias=True))
    config["properties"] = {key: _also_text(value) for key, value in config["properties"].items()}
    # Secrets are encrypted in the file.
    for key in SECRET_KEYS:
        config["properties"][key] = {
            "description": config["properties"][key]["description"],
            "type": "object",
            "properties": {"secure": {"type": "string"}},
            "required": ["secure"],
            "additionalProperties": False,
        }
    config["properties"]["cloud"]["enum"] = clouds.names()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Stack file of cloud-controller",
        "type": "object",
        "$defs": config["$defs"],
        "properties": {
            "config": {
                "type": "object",
                "properties": {f"{NAMESPACE}:{key}": value for key, value in config["properties"].items()},
                # Not what the site adds (docs/stack-config.md).
                "required": [f"{NAMESPACE}:{key}" for key in config["required"]],
                **_shapes(),
                "patternProperties": {f"^(?!{NAMESPACE}:)": True},
                "additionalProperties": False,
            }
        },
        "required": ["config"],
    }


def _shapes() -> dict[str, Any]:
    """What a new cluster must and must not have, and an existing one, whose ids and kubeconfig a site may add."""
    cluster, pools, *of_existing = (f"{NAMESPACE}:{key}" for key in ("cluster", "nodePools", "existing", KUBECONFIG))
    return {
        "if": {"properties": {cluster: {"const": EXISTING}}, "required": [cluster]},
        "then": {"properties": {pools: {"maxItems": 0}}},
        "else": {
            "required": [pools],
            "properties": {pools: {"minItems": 1}, **dict.fromkeys(of_existing, False)},
        },
    }


def _also_text(schema: dict[str, Any]) -> dict[str, Any]:
    """What `pulumi stack init` makes of `true` and `3` of the first level, and `pulumi config set KEY '{...}'` of maps.

    The program gets the same values. Pulumi itself refuses text for the lists and maps that Pulumi.yaml declares.
    """
    about = {key: value for key, value in schema.items() if key in ("description", "default")}
    rule = {key: value for key, value in schema.items() if key not in about}
    match rule:
        case {"type": "boolean"}:
            return {**about, "anyOf": [rule, {"enum": ["true", "false"]}]}
        case {"type": "integer"}:
            return {**about, "anyOf": [rule, {"type": "string", "pattern": "^[0-9]+$"}]}
        case {"anyOf": [{"$ref": _}, {"type": "null"}] as kinds}:
            return {**schema, "anyOf": [*kinds, {"type": "string", "pattern": "^[{]"}]}
    return schema


def _without_titles(node: Any) -> Any:
    """Without pydantic's titles (`Clustername`), which editors would show instead of the key."""
    if isinstance(node, dict):
        return {key: _without_titles(value) for key, value in node.items() if key != "title"}
    return [_without_titles(each) for each in node] if isinstance(node, list) else node


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
