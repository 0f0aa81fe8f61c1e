"""What the recorder needs to know of Alibaba Cloud's package: ids, ARNs, and the kubeconfig that a function returns."""

from __future__ import annotations

import json
from typing import Final

from local.plugins.recorder import Recorder
from local.plugins.recorder_values import ACCOUNT, DOMAIN, Place, Rules
from local.plugins.values import PropertyMap


def recorder(config: PropertyMap) -> Recorder:
    """A recorder of Alibaba Cloud's resources. Raises ProviderError as `Recorder` does."""
    return Recorder(config, RULES)


def _text(kind: str, key: str, id: str, place: Place) -> str | None:
    if not key.lower().endswith("arn"):
        return None
    module = kind.partition(":")[2].partition("/")[0]
    return f"acs:{module}:{place.region}:{ACCOUNT}:{id}"


def _cluster_credential(args: PropertyMap, place: Place) -> PropertyMap:
    del place
    cluster = str(args["clusterId"])
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": f"https://{cluster}.{DOMAIN}:6443"}}],
        "users": [{"name": cluster, "user": {}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": cluster,
    }
    return {
        "id": cluster,
        "clusterName": cluster,
        "kubeConfig": json.dumps(kubeconfig),
        "certificateAuthorities": [],
        "expiration": "",
    }


RULES: Final = Rules(
    # A Service names vSwitches in its annotations, and a cloud config's parser checks ids of VPCs.
    prefixes={"alicloud:vpc/network:Network": "vpc-", "alicloud:vpc/switch:Switch": "vsw-"},
    text=_text,
    functions={"alicloud:cs/getClusterCredential:getClusterCredential": _cluster_credential},
)
