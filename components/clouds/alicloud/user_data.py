"""What ECS instances run when they first start, as text (user data). It holds no secrets: their role may read those."""

from __future__ import annotations

from pathlib import Path

from ..common.user_data import MachineStart, no_metadata_for_pods

METADATA = "100.100.100.200"
"""The address of the metadata service."""
_BOOT = Path(__file__).parent / "boot"


def machine() -> MachineStart:
    """Alibaba Cloud's part of the start of a machine that joins a cluster that runs itself."""
    program = (_BOOT / "kms.py").read_text()
    script = (_BOOT / "machine.sh").read_text().replace("@KMS@\n", program)
    script = script.replace("@NO_METADATA@", no_metadata_for_pods(METADATA))
    return MachineStart(script, (_BOOT / "keep.sh").read_text(), provider_id="$REGION.$INSTANCE")
