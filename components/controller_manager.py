"""The cloud controller manager (CCM) in its cluster: identity, rights, cloud config and the daemon itself.

Its objects are those of `cloud_controller.manifests`; here they become resources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NotRequired

import pulumi
import pulumi_kubernetes as kubernetes

from cloud_controller import manifests, pod_network, rbac
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds import CloudDescriptor, descriptor
from cloud_controller.clouds.descriptor import PodIdentity
from cloud_controller.controller_names import canonical
from cloud_controller.doctor import cron_job
from cloud_controller.load_balancers.readiness_gates import Mode
from cloud_controller.service_admission import Admission

from . import clouds, inputs
from .arguments import checked
from .clouds.interface import CloudAdapter, ManagerSettings
from .config_values import is_day
from .manifest_fields import arguments_of

IMAGE = "registry.local/cloud-controller:0.1.0"
"""Our daemon's, where the program names no other."""


class CloudControllerManagerArgs(ManagerSettings):
    """Arguments of `CloudControllerManager`."""

    cloud: str
    """The cloud that it joins the cluster to."""
    cluster_name: pulumi.Input[str]
    """For people; the cloud config has the cluster's id."""
    cluster_cidr: pulumi.Input[str]
    """The range of which every node gets a part for its pods."""
    cloud_config: pulumi.Input[str]
    """The text of the cloud config; kept secret."""
    controllers: Sequence[str]
    """The controllers that the daemon runs; its rights follow from this."""
    machines: NotRequired[int]
    """How many control-plane machines there are, each of which runs one; with two or more, evictions are budgeted.

    0: the cloud runs the control plane, and two run on workers."""


class CloudControllerManager(pulumi.ComponentResource):
    """A DaemonSet on the control-plane nodes, in kube-system, with the rights of its controllers and no more.

    Where the cloud runs the control plane it has no nodes; then it is a Deployment on workers. If the cloud initialises
    the nodes as well and the CCM has a role of its own, its pods are in the pod network, behind a NetworkPolicy.

    Where the daemon runs controller `volume`, the cloud's StorageClass and CSIDriver come with it.

    Of several instances one leads (a Lease). A changed cloud config restarts them, one after another.
    """

    @inputs.naming_itself
    def __init__(self, name: str, args: CloudControllerManagerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        args = checked(CloudControllerManagerArgs, args)
        adapter = clouds.descriptor(args["cloud"]).adapter()
        inputs.check_cidr("cluster_cidr", args["cluster_cidr"])
        expires = args.get("credential_expires")
        inputs.check("credential_expires", expires, "a day, as YYYY-MM-DD", lambda v: v is None or is_day(v))
        machines = args.get("machines", 1)
        inputs.check("machines", machines, "an integer of at least 0", lambda v: v >= 0)
        cloud = descriptor(args["cloud"])
        for key in ("role", "identity", "doctor_role"):
            if key in args and cloud.identity is None:
                raise inputs.WrongInput(key, f"must not be set: cloud {cloud.name} does not support roles for pods")
        if "identity" in args:
            if "role" in args:
                raise inputs.WrongInput("identity", "must not be set with role; allowed: one of them")
            args["identity"] = checked(clouds.descriptor(args["cloud"]).identity_args, args["identity"], "identity")
        cloud_config = pulumi.Output.secret(args["cloud_config"])
        named = _controllers(args)
        mode = _gates(args, named, cloud)
        admission = _admission(args, named)
        _check_doctor(args)
        daemon = _daemon(args, named, adapter, cloud, mode)
        super().__init__(
            "cloudcontroller:index:CloudControllerManager", name, {**args, "cloud_config": cloud_config}, opts
        )
        role, doctor_role = args.get("role"), args.get("doctor_role")
        if "identity" in args:
            trusted, child = args.get("name", manifests.NAME), pulumi.ResourceOptions(parent=self)
            role = adapter.manager_role(args["identity"], trusted, child)
            if "doctor_schedule" in args:
                reader = manifests.DOCTOR.replace(manifests.NAME, trusted)
                doctor_role = adapter.manager_role(args["identity"], reader, child, reads=True)

        def identity(role: pulumi.Input[str] | None) -> PodIdentity | None:
            return cloud.identity(role, manifests.TOKEN_FILE) if cloud.identity and role is not None else None

        made = manifests.make(
            daemon,
            machines=machines,
            # A digest is no secret: without unsecret, previews would hide whether the config changed.
            checksum=pulumi.Output.unsecret(cloud_config.apply(lambda text: hashlib.sha256(text.encode()).hexdigest())),
            identity=identity(role),
            environment=args.get("environment"),
            storage=cloud.storage if "volume" in named else (),
            scrape_annotations=args.get("scrape_annotations", True),
            admission=manifests.readiness_gates(cloud.readiness_gates, mode, args.get("arguments", ())),
        )

        def resource(logical: str, manifest: manifests.Manifest, *after: pulumi.Resource) -> pulumi.Resource:
            manifest = manifests.renamed(manifest, args.get("name", manifests.NAME))
            made: pulumi.Resource = _class_of(manifest)(
                logical, **arguments_of(manifest), opts=pulumi.ResourceOptions(parent=self, depends_on=[*after])
            )
            return made

        account = resource(name, made.service_account)
        cluster_role = resource(name, made.cluster_role)
        cluster_binding = resource(name, made.cluster_role_binding, cluster_role)
        namespaced = resource(name, made.role)
        binding = resource(name, made.role_binding, namespaced)
        config = resource(f"{name}-config", manifests.cloud_config(cloud_config, args.get("credential_expires")))
        needed = [account, cluster_binding, binding, config]
        if made.network_policy is not None:
            needed.append(resource(name, made.network_policy))
        workload = resource(name, made.workload, *needed)
        if made.budget is not None:
            resource(name, made.budget)
        if "doctor_schedule" in args:
            doctor = cron_job.make(
                daemon,
                args["doctor_schedule"],
                cloud=cloud.name,
                lease=args.get("lease", rbac.LEASE_NAME),
                on_control_plane=machines > 0,
                identity=identity(doctor_role),
                environment=args.get("environment"),
                push_gateway=args.get("doctor_push_gateway"),
            )
            # Each after those before it: the job comes last, and goes first.
            examined = config
            for each in doctor:
                examined = resource(f"{name}-doctor", each, examined)
        for each in made.storage:
            resource(each["metadata"]["name"], each)
        # Created after the daemon and deleted before it: nothing else opens the gates that the policy adds.
        after = workload
        for each in made.admission:
            after = resource(name, each, after)
        # These need no daemon, and do not wait for it.
        for each in _admission_of_services(cloud, admission, args.get("arguments", ()), cloud_config):
            resource(each["metadata"]["name"], each)
        self.register_outputs({})


def _class_of(manifest: manifests.Manifest) -> Any:
    """Its resource's class. pulumi_kubernetes imports an API's classes with the first use of one, and slowly."""
    api, _, version = manifest["apiVersion"].rpartition("/")
    package = getattr(kubernetes, api.partition(".")[0] or "core")
    return getattr(getattr(package, version), manifest["kind"])


def _controllers(args: CloudControllerManagerArgs) -> list[str]:
    """The names of the daemon's controllers."""
    if not args["controllers"]:
        raise inputs.WrongInput("controllers", "empty; allowed: at least one controller for the daemon to run")
    try:
        return [canonical(controller) for controller in args["controllers"]]
    except InvalidConfiguration as error:
        raise inputs.WrongInput("controllers", f"{error.why}; allowed: {error.allowed}") from None


def _gates(args: CloudControllerManagerArgs, named: Sequence[str], cloud: CloudDescriptor) -> Mode:
    """How it serves the readiness gates of pods."""
    given = args.get("readiness_gates")
    inputs.check("readiness_gates", given, ", ".join(Mode), lambda v: v is None or v in [*Mode])
    if "vendor_version" in args:
        if given not in (None, Mode.OFF):
            raise inputs.WrongInput("readiness_gates", "must not be set: only this project's daemon serves them")
        return Mode.OFF
    return cloud.readiness_gates.mode(given, named)


def _admission(args: CloudControllerManagerArgs, named: Sequence[str]) -> Admission:
    """What the API server does with Services whose annotations the controller would reject."""
    given = args.get("service_admission", Admission.OFF.value)
    inputs.check("service_admission", given, ", ".join(Admission), lambda v: v in [*Admission])
    mode = Admission(given)
    if mode is not Admission.OFF and ("vendor_version" in args or "service" not in named):
        raise inputs.WrongInput("service_admission", "must not be set: only this project's service controller has it")
    return mode


def _check_doctor(args: CloudControllerManagerArgs) -> None:
    """Raise WrongInput unless `cloud-controller doctor` can run with what the daemon has."""
    schedule = args.get("doctor_schedule")
    if schedule is None:
        for key in ("doctor_push_gateway", "doctor_role"):
            if key in args:
                raise inputs.WrongInput(key, "must not be set without doctor_schedule")
        return
    inputs.check("doctor_schedule", schedule, "five fields, such as '0 * * * *'", cron_job.is_schedule)
    if (gateway := args.get("doctor_push_gateway")) and cron_job.gateway_port(gateway) is None:
        # Without the value, which may have a password.
        raise inputs.WrongInput("doctor_push_gateway", f"is none; allowed: {cron_job.GATEWAY}")
    if "vendor_version" in args:
        raise inputs.WrongInput("doctor_schedule", "must not be set: only this project's image has the command")
    if "role" in args and "doctor_role" not in args:
        # Without a role, every run would report that the cloud refuses.
        why = "is missing; required with role and doctor_schedule: the role trusts the CCM's ServiceAccount alone"
        raise inputs.WrongInput("doctor_role", why)
    if "doctor_role" in args and "role" not in args:
        raise inputs.WrongInput("doctor_role", "must not be set without role")


def _admission_of_services(
    cloud: CloudDescriptor, mode: Admission, arguments: Sequence[str], cloud_config: pulumi.Output[str]
) -> Iterator[manifests.Manifest]:
    """The policies, whose spec depends on the cloud config where the cloud says so, and their bindings."""

    def specs(text: str) -> dict[str, Any]:
        made = manifests.admission_of_services(cloud, mode, arguments, text)
        return {each["metadata"]["name"]: each["spec"] for each in made}

    # What a policy takes from the config is no secret (`FromConfig`).
    known = pulumi.Output.unsecret(cloud_config.apply(specs)) if cloud.of_config else None
    for each in manifests.admission_of_services(cloud, mode, arguments, None):
        if known is not None and "validations" in each["spec"]:
            each = {**each, "spec": known[each["metadata"]["name"]]}
        yield each


def _daemon(
    args: CloudControllerManagerArgs, named: Sequence[str], adapter: CloudAdapter, cloud: CloudDescriptor, mode: Mode
) -> manifests.Daemon:
    """What runs, and its rights."""
    lease = args.get("lease", rbac.LEASE_NAME)
    rules = rbac.rules(
        named,
        # It listens on the pod's address, where its metrics need protection.
        protected=True,
        keeps_checkpoint=cloud.keeps_checkpoint,
        readiness_gates=mode is not Mode.OFF,
        lease=lease,
    )
    if "vendor_version" in args:
        vendor = adapter.vendor_manager(
            args["vendor_version"],
            named,
            cluster_name=args["cluster_name"],
            cluster_cidr=args["cluster_cidr"],
            config_file=manifests.CONFIG_PATH,
        )
        return manifests.Daemon(args.get("image", vendor.image), vendor.arguments, vendor.rules, "/healthz")
    for controller in named:
        if controller in cloud.not_offered:
            raise inputs.WrongInput("controllers", f"{controller}: {cloud.not_offered[controller]}")
    arguments = manifests.arguments(
        args["cloud"],
        args["controllers"],
        cluster_name=args["cluster_name"],
        cluster_cidr=args["cluster_cidr"],
        lease=lease,
        expires=args.get("credential_expires"),
        further=[*cloud.readiness_gates.flag(mode), *args.get("arguments", ())],
        concat=pulumi.Output.concat,
    )
    on_pods = pod_network.suffices(named, args.get("machines", 1), has_role="role" in args or "identity" in args)
    return manifests.Daemon(args.get("image", IMAGE), arguments, rules, metadata=cloud.metadata if on_pods else None)
