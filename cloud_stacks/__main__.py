"""`python -m cloud_stacks`."""

import sys

from cloud_stacks.cli import main

sys.exit(main())
