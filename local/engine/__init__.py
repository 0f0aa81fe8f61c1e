"""The embedded engine: runs a Pulumi program where no CLI is installed."""

import os

# Read when gRPC is first imported. Else it tells on standard error, amid the display, that a program which has ended
# closed its callback server.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
