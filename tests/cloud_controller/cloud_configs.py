"""A valid cloud config of each cloud, for tests that call none."""

from __future__ import annotations

TOKEN = "not-to-be-shown"
CONFIGS = {
    "alicloud": '{"Global": {"clusterID": "c-1", "region": "cn-hangzhou", "vpcid": "vpc-1", '
    f'"accessKeyID": "LTAI1", "accessKeySecret": "{TOKEN}"}}}}',
    "aws": "[Global]\nKubernetesClusterID = prod-1\nRegion = eu-central-1\n",
    "mycloud": f"[Global]\nendpoint = http://127.0.0.1:1\ntoken = {TOKEN}\ncluster-id = c-0123456789ab\n",
    "openstack": "[Global]\ncluster-id = c-1\nauth-url = http://127.0.0.1:1/v3\nregion = north\n"
    f"application-credential-id = ac-1\napplication-credential-secret = {TOKEN}\n[Route]\nrouter-id = r-1\n",
}
