"""A stack: a cluster, its machines, its cloud controller manager and optionally two workloads behind load balancers.

Typed config in (docs/stack-config.md), components out. `depends_on` determines the order of a `destroy`: first the
guard, which stops it if load balancers would be left behind, then the load balancers, while the CCM runs, and pod
routes before their machines. Objects in the cluster are deleted with it (`deleted_with`), except the LoadBalancer
Services, whose load balancers would stay. A cluster that is there already (`cluster: existing`) is only read, and a
destroy deletes what the program made in it, one by one.
"""

import pulumi
import pulumi_kubernetes as kubernetes

from cloud_controller.monitoring.manifests import Mode
from cloud_controller.service_admission import Admission
from components import clouds, stack_config
from components.cloud_controller import CloudController, MachineArgs
from components.cluster import Cluster
from components.controller_manager import CloudControllerManager
from components.destroy_guard import DestroyGuard
from components.load_balancer_service import LoadBalancerService, LoadBalancerServiceArgs, PortArgs
from components.monitoring import Monitoring, MonitoringArgs
from components.node_pool import NodePool
from components.stack_config import Executor, Role
from components.stack_model import AUTO
from components.workload import Workload


def main() -> None:
    """Declare the stack."""
    config = stack_config.load()
    existing = config.existing
    adapter = clouds.descriptor(config.cloud).adapter()
    zones = sorted({zone for pool in config.node_pools for zone in pool.zones})
    # Children of a component inherit these. They protect the cluster, and addresses that others know.
    kept = pulumi.ResourceOptions(protect=config.protect or None, retain_on_delete=config.retain or None)
    in_cloud = pulumi.ResourceOptions(providers=adapter.providers(config))

    if existing is None:
        cluster = Cluster(
            config.cluster_name,
            {"cloud": config.cloud, "zones": zones, **adapter.cluster_settings(config)},
            opts=pulumi.ResourceOptions.merge(in_cloud, kept),
        )
    else:
        cluster = Cluster.get(
            config.cluster_name,
            {
                "cloud": config.cloud,
                "cluster_id": existing.cluster_id,
                "network_id": existing.network_id,
                "pod_cidr": existing.pod_cidr,
                "kubeconfig": pulumi.Output.secret(config.secret("kubeconfig")),
            },
        )
    pools = {
        pool.name: NodePool(
            pool.name,
            {
                "cloud": config.cloud,
                "cluster_name": config.cluster_name,
                "cluster_id": cluster.cluster_id,
                "subnet_ids": cluster.subnet_ids,
                "join": cluster.join,
                "count": pool.count,
                "type": pool.type,
                "zones": pool.zones,
                "role": pool.role.value,
                "ingress": pool.ingress,
                "labels": pool.labels,
            },
            opts=in_cloud,
        )
        for pool in config.node_pools
    }
    control_plane = [pools[pool.name] for pool in config.node_pools if pool.role is Role.CONTROL_PLANE]

    # Secrets change in place: a replaced cloud config would be missing for a moment, just when the CCM restarts for it.
    # An existing cluster may get another endpoint or certificate authority; its LoadBalancer Services must not be
    # replaced for that, because their addresses would be lost.
    api = kubernetes.Provider(
        config.cluster_name,
        kubeconfig=cluster.kubeconfig,
        enable_secret_mutable=True,
        cluster_identifier=existing.cluster_id if existing else None,
    )
    in_cluster = pulumi.ResourceOptions(providers=[api], deleted_with=cluster.control_plane)
    settings = adapter.manager_settings(config, cluster.ccm_role)
    if cluster.ccm_environment:
        settings["environment"] = {**settings.get("environment", {}), **cluster.ccm_environment}
    if flags := config.service_flags():
        settings["arguments"] = [*settings.get("arguments", ()), *flags]
    if config.readiness_gates != AUTO:
        settings["readiness_gates"] = config.readiness_gates
    if config.service_admission != Admission.OFF:
        settings["service_admission"] = config.service_admission
    if config.doctor_schedule:
        settings["doctor_schedule"] = config.doctor_schedule
        if cluster.doctor_role is not None:
            settings["doctor_role"] = cluster.doctor_role
    if config.doctor_push_gateway:
        settings["doctor_push_gateway"] = config.doctor_push_gateway
    if config.monitoring == Mode.OPERATOR:
        settings["scrape_annotations"] = False
    ours = config.executor(stack_config.Controller.SERVICE) is Executor.DAEMON
    serves_without_class = ours and "--require-load-balancer-class" not in settings.get("arguments", ())
    # None where the cloud's own software runs every controller.
    managers: list[pulumi.Resource] = []
    watching: list[pulumi.Resource] = []
    if daemon := [name.value for name in config.run_by(Executor.DAEMON)]:
        manager = CloudControllerManager(
            "cloud-controller-manager",
            {
                "cloud": config.cloud,
                "cluster_name": config.cluster_name,
                "cluster_cidr": cluster.pod_cidr,
                "cloud_config": adapter.cloud_config(config, cluster.cluster_id, cluster.network_id, cluster.facts),
                "controllers": daemon,
                "machines": config.control_plane_machines,
                **settings,
            },
            # In a cluster with a managed control plane it runs on workers. In an existing one it may make its own role.
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions.merge(in_cloud, in_cluster),
                pulumi.ResourceOptions(depends_on=control_plane or list(pools.values())),
            ),
        )
        managers.append(manager)
        if config.monitoring != Mode.OFF:
            watched: MonitoringArgs = {"cloud": config.cloud, "mode": config.monitoring}
            if "name" in settings:
                watched["name"] = settings["name"]
            watching = [Monitoring("monitoring", watched, in_cluster)]
    machines: list[MachineArgs] = [
        {"name": machine.name, "provider_id": machine.provider_id}
        for pool in pools.values()
        for machine in pool.machines
    ]
    machines += [{"name": name} for name in (existing.machines if existing else ())]
    controller = CloudController(
        "cloud-controller",
        cloud=config.cloud,
        cluster_id=cluster.cluster_id,
        network_id=cluster.network_id,
        cluster_cidr=cluster.pod_cidr,
        machines=machines,
        pools=[{"name": pool.pool, "count": pool.unnamed} for pool in pools.values() if pool.unnamed],
        executors={name.value: config.executor(name).value for name in stack_config.Controller},
        existing=existing is not None,
        opts=pulumi.ResourceOptions(depends_on=[*pools.values(), *managers]),
    )
    pulumi.export("clusterId", cluster.cluster_id)
    pulumi.export("kubeconfig", cluster.kubeconfig)

    in_turn: list[pulumi.Resource] = [cluster, *pools.values(), *managers, *watching, controller]
    services: list[LoadBalancerService] = []
    if config.workloads:
        initialised = pulumi.ResourceOptions(depends_on=[controller, *managers])
        running = pulumi.ResourceOptions.merge(in_cluster, initialised)
        balanced = pulumi.ResourceOptions.merge(
            pulumi.ResourceOptions.merge(initialised, kept), pulumi.ResourceOptions(providers=[api])
        )
        web = Workload("web", {"image": "registry.local/web:1", "port": 8080, "health_path": "/healthz"}, opts=running)
        echo = Workload("echo", {"image": "registry.local/echo-udp:1", "port": 8053, "protocol": "UDP"}, opts=running)

        def balance(name: str, workload: Workload, port: PortArgs) -> LoadBalancerService:
            """A Service of the same name in front of the workload."""
            args: LoadBalancerServiceArgs = {
                "cloud": config.cloud,
                "selector": workload.selector,
                "ports": [port],
                "source_ranges": config.source_ranges,
                "served_classes": adapter.served_classes(config),
            }
            if config.serves_load_balancers:
                args["cluster"] = {
                    "cluster_id": cluster.cluster_id,
                    "network_id": cluster.network_id,
                    "existing": existing is not None,
                    "arguments": settings.get("arguments", ()),
                }
            if digest := config.acknowledged(f"default/{name}"):
                args["replace_address"] = digest
            return LoadBalancerService(name, adapter.balanced(config, args, cluster.subnet_ids), opts=balanced)

        web_service = balance("web", web, {"port": 8080, "target_port": "main"})
        echo_service = balance("echo", echo, {"port": 8053, "target_port": "main", "protocol": "UDP"})
        in_turn += [web, echo]
        services += [web_service, echo_service]
        if adapter.forwards(config):
            pulumi.export("webUrl", pulumi.Output.concat("http://", web_service.address, ":8080/"))
        pulumi.export("webAddress", web_service.address)
        pulumi.export("echoAddress", echo_service.address)
    DestroyGuard(
        "destroy-guard",
        cloud=config.cloud,
        cluster_id=cluster.cluster_id,
        network_id=cluster.network_id,
        cluster_uid=controller.cluster_uid,
        services=[service.key for service in services],
        existing=existing is not None,
        # Those of the cloud's own CCM may take their time: a destroy of an existing cluster's stack is not theirs.
        without_class=existing is None or serves_without_class,
        opts=pulumi.ResourceOptions(depends_on=[*in_turn, *services], retain_on_delete=config.retain or None),
    )


main()
