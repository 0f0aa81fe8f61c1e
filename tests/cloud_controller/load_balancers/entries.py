"""Annotations for catalogues that only a test has."""

from __future__ import annotations

from typing import Any

from cloud_controller.load_balancers.catalogue import Annotation, Mutability


def entry(argument: str, **more: Any) -> Annotation:
    """A text that is changed in place, unless more is said."""
    defaults: dict[str, Any] = {
        "name": f"example.com/{argument}",
        "argument": argument,
        "sets": argument,
        "type": str,
        "description": "It is for a test.",
        "applies_to": "everything",
        "mutability": Mutability.IN_PLACE,
        "since": "0.1",
        "source": "this test",
    }
    return Annotation(**(defaults | more))
