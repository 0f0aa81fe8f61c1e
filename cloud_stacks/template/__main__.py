"""A Service behind a load balancer, on a cluster that is there already."""

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_cloud_controller.load_balancer_service import LoadBalancerService

config = pulumi.Config()
cluster = kubernetes.Provider("cluster", kubeconfig=config.get_secret("kubeconfig"))
shop = LoadBalancerService(
    "shop",
    {
        "cloud": config.require("cloud"),
        "selector": {"app.kubernetes.io/name": "shop"},
        "ports": [{"port": 443, "target_port": 8443}],
        "source_ranges": config.require_object("sourceRanges"),
    },
    opts=pulumi.ResourceOptions(providers=[cluster]),
)
pulumi.export("address", shop.address)
