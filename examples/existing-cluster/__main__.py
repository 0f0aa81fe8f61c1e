import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_cloud_controller.cloud_controller import CloudController
from pulumi_cloud_controller.cluster import Cluster
from pulumi_cloud_controller.controller_manager import CloudControllerManager
from pulumi_cloud_controller.destroy_guard import DestroyGuard
from pulumi_cloud_controller.load_balancer_service import LoadBalancerService
from pulumi_cloud_controller.workload import Workload

config = pulumi.Config()
cloud = config.require_object("mycloud")
ids = config.require_object("cluster")
controllers = ["node", "route", "service", "node-lifecycle", "volume"]

cluster = Cluster.get(
    "shop",
    {
        "cloud": "mycloud",
        "cluster_id": ids["clusterId"],
        "network_id": ids["networkId"],
        "pod_cidr": ids["podCidr"],
        "kubeconfig": config.require_secret("kubeconfig"),
    },
)
api = kubernetes.Provider("shop", kubeconfig=cluster.kubeconfig, enable_secret_mutable=True)
in_cluster = pulumi.ResourceOptions(providers=[api])
manager = CloudControllerManager(
    "cloud-controller-manager",
    {
        "cloud": "mycloud",
        "cluster_name": "shop",
        "cluster_cidr": cluster.pod_cidr,
        "cloud_config": pulumi.Output.format(
            "[Global]\nendpoint = {0}\ntoken = {1}\ncluster-id = {2}\n",
            cloud["endpoint"],
            config.require_secret("mycloudToken"),
            cluster.cluster_id,
        ),
        "controllers": controllers,
        "machines": 1,  # nodes of the control plane
    },
    opts=in_cluster,
)
initialised = CloudController(
    "cloud-controller",
    cloud="mycloud",
    cluster_id=cluster.cluster_id,
    network_id=cluster.network_id,
    cluster_cidr=cluster.pod_cidr,
    machines=[{"name": name} for name in ("plane", "a", "b")],
    executors=dict.fromkeys(controllers, "daemon"),
    existing=True,
    opts=pulumi.ResourceOptions(depends_on=[manager]),
)
ready = pulumi.ResourceOptions(providers=[api], depends_on=[initialised])
web = Workload("web", {"image": "registry.local/web:1", "port": 8080, "health_path": "/healthz"}, opts=ready)
shop = LoadBalancerService(
    "shop",
    {"cloud": "mycloud", "selector": web.selector, "ports": [{"port": 8081, "target_port": "main"}]},
    opts=ready,
)
DestroyGuard(
    "destroy-guard",
    cloud="mycloud",
    cluster_id=cluster.cluster_id,
    network_id=cluster.network_id,
    cluster_uid=initialised.cluster_uid,
    services=[shop.key],
    existing=True,
    opts=pulumi.ResourceOptions(depends_on=[manager, initialised, web, shop]),
)
pulumi.export("url", pulumi.Output.concat("http://", shop.address, ":8081/"))
