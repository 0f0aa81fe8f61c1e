"""Make a cluster of mycloud for the example, as somebody else would: `make_cluster.py STATE`, the local site's folder.

Writes its ids into Pulumi.dev.yaml and its kubeconfig into the file `kubeconfig`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import yaml

from cloud_controller.clouds.mycloud.client import Client


def main(state: Path, stack_file: Path, kubeconfig: Path) -> None:
    endpoint = json.loads((state / "site.json").read_text())["endpoint"]
    cloud = Client(endpoint, (state / "mycloud" / "token").read_text().strip())

    def make(collection: str, ready: str = "available", **body: Any) -> dict[str, Any]:
        made = cloud.create(collection, body)
        return dict(cloud.wait_for_state(collection, made["id"], [ready], 300))

    network = make("networks", name="theirs")
    subnet = make("subnets", name="theirs", network_id=network["id"], zone="zone-a")
    cluster = make("clusters", name="theirs", network_id=network["id"])
    # The tag by which the controllers know the cluster's machines.
    shared = {"cluster_id": cluster["id"], "subnet_id": subnet["id"], "tags": {"kubernetes.io/cluster": cluster["id"]}}
    make("machines", "running", name="plane", role="control-plane", type="m1.medium", **shared)
    for name in ("a", "b"):
        make("machines", "running", name=name, role="worker", type="m1.small", **shared)

    ids = {"clusterId": cluster["id"], "networkId": network["id"], "podCidr": network["pod_cidr"]}
    config = {"existing-cluster:mycloud": {"endpoint": endpoint}, "existing-cluster:cluster": ids}
    stack_file.write_text(yaml.safe_dump({"config": config}))
    with os.fdopen(os.open(kubeconfig, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(cloud.get_path(f"clusters/{cluster['id']}/kubeconfig")["kubeconfig"])


if __name__ == "__main__":
    here = Path(__file__).parent
    main(Path(sys.argv[1]), here / "Pulumi.dev.yaml", here / "kubeconfig")
