"""`python -m local.engine`."""

from local.engine import collector, termination
from local.engine.cli_request import begin

collector.search_seldom()
termination.heed()
begin()
from local.engine.cli import main  # noqa: E402 - meanwhile the key of the passphrase is derived

collector.leave(main())
