"""`python -m local.engine`."""

import sys

from local.engine.cli_request import begin

begin()
from local.engine.cli import main  # noqa: E402 - meanwhile the key of the passphrase is derived

sys.exit(main())
