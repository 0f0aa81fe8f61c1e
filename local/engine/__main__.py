"""`python -m local.engine`."""

import gc
import sys

from local.engine import termination
from local.engine.cli_request import begin

# A run is short and keeps most of what it makes: to look through it all the time for cycles costs a sixth of it.
gc.set_threshold(100_000, 20, 20)
termination.heed()
begin()
from local.engine.cli import main  # noqa: E402 - meanwhile the key of the passphrase is derived

sys.exit(main())
