"""What the monitor tells the SDK of itself."""

from __future__ import annotations

from typing import Any, cast

import pulumi
import pytest
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import _LEGACY_FEATURE_MAPPING, get_monitor

from local.engine.monitor import FEATURES

pytestmark = pytest.mark.engine


def test_nothing_is_advertised_that_is_not_done() -> None:
    names = {resource_pb2.ResourceMonitorFeature.Name(f).removeprefix("RESOURCE_MONITOR_FEATURE_") for f in FEATURES}
    assert not names & {"PARAMETERIZATION", "STATE_MIGRATIONS", "BYTE_STRING", "CALL_OUTPUT_VALUES"}


@pytest.mark.parametrize("word", sorted(_LEGACY_FEATURE_MAPPING))
def test_an_older_sdk_that_asks_word_by_word_hears_the_same(stack: Any, word: str) -> None:
    heard = []

    def program() -> None:
        request = resource_pb2.SupportsFeatureRequest(id=word)
        heard.append(cast(Any, get_monitor()).SupportsFeature(request).hasSupport)
        pulumi.export("asked", word)

    assert stack.preview(program).ok
    assert heard == [_LEGACY_FEATURE_MAPPING[word] in FEATURES]
