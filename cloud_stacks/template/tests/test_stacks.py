"""Every stack can be planned, and violates no mandatory policy: without state, secrets or a cloud."""

import io
import json
from pathlib import Path

from cloud_stacks.cli import main


def test_every_stack_can_be_planned() -> None:
    shown = io.StringIO()

    code = main(["preview", "--cwd", str(Path(__file__).parents[1]), "--json"], shown)

    stacks = json.loads(shown.getvalue())["stacks"]
    assert code == 0, [stack["problems"] + stack["findings"] for stack in stacks]
    assert all(stack["changes"] for stack in stacks)
