"""The embedded engine: runs a Pulumi program where no CLI is installed."""

import os

# Read when gRPC is first imported. Without it gRPC would write to standard error, in the middle of the display, that an
# ended program has closed its callback server.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
