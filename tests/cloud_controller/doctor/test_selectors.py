"""Label selectors as Kubernetes reads them."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.doctor.selectors import selects

LABELS = {"app": "ccm", "tier": "control-plane"}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchLabels": {"app": "ccm"}}, True),
        ({"matchLabels": {"app": "web"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["ccm", "web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["ccm"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"app": "ccm"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
    ],
)
def test_labels_and_expressions_must_all_hold(selector: dict[str, Any], selected: bool) -> None:
    assert selects(selector, LABELS) is selected
