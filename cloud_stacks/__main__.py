"""`python -m cloud_stacks`."""

import sys

from cloud_stacks.cli import command

sys.exit(command())
