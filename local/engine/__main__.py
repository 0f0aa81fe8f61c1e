"""`python -m local.engine`."""

import sys

from local.engine.cli import main

sys.exit(main())
