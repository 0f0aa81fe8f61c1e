import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_cloud_controller.load_balancer_service import LoadBalancerService

cluster = kubernetes.Provider("cluster", kubeconfig=pulumi.Config().require_secret("kubeconfig"))
shop = LoadBalancerService(
    "shop",
    {"cloud": "mycloud", "selector": {"app.kubernetes.io/name": "web"}, "ports": [{"port": 8081, "target_port": 8080}]},
    opts=pulumi.ResourceOptions(providers=[cluster]),
)
pulumi.export("url", pulumi.Output.concat("http://", shop.address, ":8081/"))
