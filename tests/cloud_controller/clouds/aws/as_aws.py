"""moto, in this process, as AWS documents it where it is not: as the site has it (`local.aws.balancing`)."""

from __future__ import annotations

import pytest

from local.aws.balancing import AS_AWS


def mend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends."""
    for (owner, method), instead in AS_AWS.items():
        monkeypatch.setattr(owner, method, instead)
