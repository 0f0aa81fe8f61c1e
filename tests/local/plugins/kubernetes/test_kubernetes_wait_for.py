"""The annotation `pulumi.com/waitFor`: like kubectl's `wait --for`, in its two forms."""

from __future__ import annotations

from typing import Any

import pytest

from local.plugins.kubernetes.wait_for import parse_wait_for

OBJECT: dict[str, Any] = {
    "data": {"ca.crt": "MTIz", "empty": ""},
    "status": {
        "phase": "Running",
        "replicas": 3,
        "paused": False,
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "Synced", "status": "False", "message": "quota exceeded"},
        ],
    },
}


@pytest.mark.parametrize(
    "text",
    [
        "condition=Ready",
        "condition=ready=true",
        "condition=Synced=False",
        "jsonpath={.status.phase}",
        "jsonpath={.status.phase}=Running",
        "jsonpath={status.phase}=Running",
        "jsonpath={.status.replicas}=3",
        "jsonpath={.status.paused}=false",
        r"jsonpath={.data.ca\.crt}",
        "jsonpath={.data.empty}",
        'jsonpath={.status.conditions[?(@.type=="Ready")].status}=True',
        "jsonpath={.status.conditions[*].type}=Synced",
        '["condition=Ready", "jsonpath={.status.replicas}=3"]',
    ],
)
def test_an_expression_that_holds_is_ready(text: str) -> None:
    assert parse_wait_for(text)(OBJECT).ready


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("condition=Healthy", "waiting for condition Healthy=True: it is absent"),
        ("condition=Synced", "waiting for condition Synced=True: it is False (quota exceeded)"),
        ("jsonpath={.status.address}", "waiting for {.status.address}: it is absent"),
        ("jsonpath={.status.phase}=Ended", "waiting for {.status.phase}=Ended: it has another value"),
        ('["condition=Ready", "condition=Healthy"]', "waiting for condition Healthy=True: it is absent"),
    ],
)
def test_an_expression_that_does_not_hold_reports_what_it_waits_for(text: str, said: str) -> None:
    progress = parse_wait_for(text)(OBJECT)

    assert (progress.ready, progress.message) == (False, said)


def test_the_value_at_a_jsonpath_is_not_shown() -> None:
    progress = parse_wait_for(r"jsonpath={.data.ca\.crt}=other")(OBJECT)

    assert "MTIz" not in progress.message


def test_an_object_without_a_status_is_not_ready() -> None:
    assert not parse_wait_for("condition=Ready")({"metadata": {"name": "a"}}).ready


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ready", "allowed: condition=TYPE"),
        ("condition=", "allowed: condition=TYPE"),
        ("jsonpath=.status.phase", "allowed: condition=TYPE"),
        ("jsonpath={.status[}", "is not a valid JSONPath"),
        ("[]", "at least one"),
        ("[1]", "each a string"),
        ('["condition=Ready"', "is not a JSON list"),
        ('["condition=Ready", "x"]', "'x' is not a valid expression"),
    ],
)
def test_an_invalid_expression_is_refused_with_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_wait_for(text)
