"""What the monitor tells the SDK of itself."""

from __future__ import annotations

from pulumi.runtime.proto import resource_pb2

from local.engine.monitor import FEATURES


def test_nothing_is_advertised_that_is_refused() -> None:
    names = {resource_pb2.ResourceMonitorFeature.Name(f) for f in FEATURES}
    assert not {n for n in names if "TRANSFORM" in n or "HOOK" in n or "TRIGGER" in n or "REPLACE_WITH" in n}
