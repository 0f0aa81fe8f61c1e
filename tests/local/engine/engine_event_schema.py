"""apitype.EngineEvent as a JSON schema, by hand from the CLI's definition: every field, and which are required."""

from __future__ import annotations

from typing import Any, Final

from jsonschema import Draft202012Validator

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXTS: Schema = {"type": "array", "items": TEXT}
PROPERTIES: Schema = {"type": "object"}
OPERATIONS = (
    *("same", "create", "update", "delete", "replace", "create-replacement", "delete-replaced", "read"),
    *("read-replacement", "refresh", "discard", "discard-replaced", "remove-pending-replace", "import"),
    "import-replacement",
)
OPERATION: Schema = {"enum": list(OPERATIONS)}


def fields(always: Schema, sometimes: Schema | None = None) -> Schema:
    """An object: Go always writes a field without `omitempty`; there are no others."""
    sometimes = sometimes or {}
    return {
        "type": "object",
        "properties": always | sometimes,
        "required": list(always),
        "additionalProperties": False,
    }


def maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


STATE = fields(
    {"type": TEXT, "urn": TEXT, "id": TEXT, "parent": TEXT, "inputs": PROPERTIES, "outputs": PROPERTIES}
    | {"provider": TEXT},
    {"custom": FLAG, "delete": FLAG, "protect": FLAG, "taint": FLAG, "retainOnDelete": FLAG, "initErrors": TEXTS},
)
KIND: Schema = {"enum": ["add", "add-replace", "delete", "delete-replace", "update", "update-replace"]}
DETAILED: Schema = {"type": "object", "additionalProperties": fields({"diffKind": KIND, "inputDiff": FLAG})}
METADATA = fields(
    {"op": OPERATION, "urn": TEXT, "type": TEXT, "old": maybe(STATE), "new": maybe(STATE)}
    | {"detailedDiff": maybe(DETAILED), "provider": TEXT},
    {"keys": TEXTS, "diffs": TEXTS, "logical": FLAG},
)
POLICY: Schema = {
    "color": TEXT,
    "policyName": TEXT,
    "policyPackName": TEXT,
    "policyPackVersion": TEXT,
    "policyPackVersionTag": TEXT,
}
ABOUT: Schema = {"resourceUrn": TEXT}
SEVERITY: Schema = {"enum": ["info", "info#err", "warning", "error"]}
LEVEL: Schema = {"enum": ["advisory", "mandatory", "remediate", "disabled", "not-evaluated"]}
"""The CLI's, and this engine's own for a rule that did not run: in Go it is a string like any other."""

KINDS: dict[str, Schema] = {
    "cancelEvent": fields({}),
    "stdoutEvent": fields({"message": TEXT, "color": TEXT}),
    "diagnosticEvent": fields(
        {"message": TEXT, "color": TEXT, "severity": SEVERITY},
        {"urn": TEXT, "prefix": TEXT, "streamID": COUNT, "ephemeral": FLAG},
    ),
    "preludeEvent": fields({"config": {"type": "object", "additionalProperties": TEXT}}),
    "summaryEvent": fields(
        {
            "maybeCorrupt": FLAG,
            "durationSeconds": COUNT,
            "resourceChanges": {"type": "object", "propertyNames": OPERATION, "additionalProperties": COUNT},
            "PolicyPacks": {"type": "object", "additionalProperties": TEXT},
            "isPreview": FLAG,
        }
    ),
    "resourcePreEvent": fields({"metadata": METADATA}, {"planning": FLAG}),
    "resOutputsEvent": fields({"metadata": METADATA}, {"planning": FLAG}),
    "resOpFailedEvent": fields({"metadata": METADATA, "status": COUNT, "steps": COUNT}),
    "policyEvent": fields({**POLICY, "message": TEXT, "enforcementLevel": LEVEL}, ABOUT),
    "policyRemediationEvent": fields(POLICY, {**ABOUT, "before": PROPERTIES, "after": PROPERTIES}),
    "policyLoadEvent": fields({}),
}

# Made once: `jsonschema.validate` checks the whole schema for each event.
ENGINE_EVENT: Final = Draft202012Validator(
    {**fields({"sequence": COUNT, "timestamp": COUNT}, KINDS), "oneOf": [{"required": [kind]} for kind in KINDS]}
)
