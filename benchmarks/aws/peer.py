"""The peer: Kubernetes' own AWS controller in Go, built from its Go modules once per machine.

    python -m benchmarks.aws.peer

builds it and prints its path. Its versions are those of tools/aws-peer/go.mod. It is needed to measure and to record
the peer's behaviour, never to run or test this project.
"""

from __future__ import annotations

import sys

from local.go.tool import GoTool

CONTROLLER = GoTool(
    folder="aws-peer",
    module="k8s.io/cloud-provider-aws",
    package="k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager",
    takes="3 to 6 minutes",
)


if __name__ == "__main__":
    print(CONTROLLER.binary(lambda line: print(line, file=sys.stderr, flush=True)))
