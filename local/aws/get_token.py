"""`aws eks get-token` for machines without AWS's command line: kubeconfigs of EKS run it to get a token.

A site puts it, as `aws`, on the PATH of its stack's runs. Credentials, region and endpoint come from the environment.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local.aws.tokens import CLUSTER_HEADER, PREFIX
from local.state_folder import write_private

PRESIGNED_SECONDS = 60
LIFETIME = timedelta(minutes=14)
"""Of a token: EKS accepts them for 15 minutes."""


def main(argv: list[str] | None = None) -> None:
    """Print an ExecCredential."""
    parser = argparse.ArgumentParser(prog="aws", description="A stand-in for AWS's command line: `eks get-token` only.")
    parser.add_argument("service", choices=["eks"])
    parser.add_argument("command", choices=["get-token"])
    parser.add_argument("--cluster-name", required=True)
    parser.add_argument("--region", default=os.environ.get("AWS_REGION"))
    parser.add_argument("--output", choices=["json"], default="json")
    options = parser.parse_args(argv)
    try:
        key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        endpoint = os.environ["AWS_ENDPOINT_URL"]
    except KeyError as missing:
        parser.exit(255, f"environment variable {missing.args[0]} is not set\n")
    print(json.dumps(exec_credential(token(options.cluster_name, endpoint, options.region, key, secret))))


def token(cluster: str, endpoint: str, region: str, access_key: str, secret_key: str) -> str:
    """A presigned request to STS that identifies its signer to the cluster."""
    query = urlencode({"Action": "GetCallerIdentity", "Version": "2011-06-15"})
    request = AWSRequest("GET", f"{endpoint}/?{query}", headers={CLUSTER_HEADER: cluster})
    SigV4QueryAuth(Credentials(access_key, secret_key), "sts", region, expires=PRESIGNED_SECONDS).add_auth(request)
    return PREFIX + base64.urlsafe_b64encode(str(request.url).encode()).decode().rstrip("=")


def exec_credential(token: str) -> dict[str, object]:
    """In the format that Kubernetes' clients expect of a credential plugin."""
    ends = (datetime.now(UTC) + LIFETIME).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "spec": {},
        "status": {"expirationTimestamp": ends, "token": token},
    }


def write_command(folder: Path) -> None:
    """Write the command `aws` to a folder for the PATH."""
    command, new = folder / "aws", folder / "aws.written"
    project, python = (shlex.quote(str(each)) for each in (Path(__file__).resolve().parents[2], sys.executable))
    call = f'PYTHONPATH={project} exec {python} -P -m local.aws.get_token "$@"'
    write_private(new, f"#!/bin/sh\n{call}\n")
    new.chmod(0o700)
    new.replace(command)  # atomically: another run of the stack may be calling it


if __name__ == "__main__":
    main()
