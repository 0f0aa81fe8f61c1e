"""The rights of a scheduled doctor on a real API server: they suffice for every check, and each of them is used."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
import yaml

from cloud_controller import rbac
from cloud_controller.binding import Binding
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.doctor import cron_job
from cloud_controller.doctor.checks import ALL
from cloud_controller.doctor.findings import Result, examine
from cloud_controller.doctor.seen import Daemon, Seen, Target
from cloud_controller.kube import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEPLOYMENTS,
    LEASES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    ForbiddenError,
    Kube,
    NotFoundError,
    Object,
    PatchType,
    Resource,
    name,
    namespace,
)
from cloud_controller.manifests import CONFIG_SECRET, DOCTOR, NAME, account_with
from cloud_controller.planning import PlanSettings
from cloud_controller.safeguard import Safeguard, cluster_uid
from local.control_plane.control_plane import ControlPlane
from tests.cloud_controller.doctor.manager import no_cloud

pytestmark = pytest.mark.control_plane

SPACE = rbac.LEASE_NAMESPACE
DAEMON = rbac.rules(["node", "service"], protected=True)
_KINDS = (SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)


def _described(method: str, path: str) -> tuple[str, str, str]:
    found = re.fullmatch(
        r"/apis?/(?:(?P<group>[a-z0-9.]+)/)?v1(?:/namespaces/[^/]+(?=/))?/(?P<plural>\w+)(?:/(?P<name>[^/]+))?"
        r"(?:/(?P<sub>log|proxy).*)?",
        path,
    )
    if found is None:
        return "get", path, ""
    plural = found["plural"] + (f"/{found['sub']}" if found["sub"] else "")
    verb = "create" if method == "POST" else "get" if found["name"] else "list"
    return verb, plural, found["name"] or ""


@pytest.fixture
def doctor(kube: Kube, control_plane: ControlPlane) -> Iterator[Kube]:
    """A client with the doctor's rights and no others, in a cluster with a CCM whose pod crashes and one that runs."""
    objects = [*account_with(DOCTOR, {"k8s-app": DOCTOR}, cron_job.rights(DAEMON))]
    made = [*zip(_KINDS, objects, strict=True), *_ccm()]
    created: list[tuple[Resource, Object]] = []
    try:
        for resource, obj in made:
            kube.create(resource, obj)
            created.append((resource, obj))
            if "status" in obj:
                status = {"status": obj["status"]}
                kube.patch(resource, name(obj), status, SPACE, type=PatchType.MERGE, subresource="status")
        token = kube.create(SERVICE_ACCOUNTS, {"spec": {}}, SPACE, name=DOCTOR, subresource="token")
        document = yaml.safe_load(control_plane.kubeconfig("anybody", [], timedelta(hours=1)))
        document["users"][0]["user"] = {"token": token["status"]["token"]}
        client = Kube.from_kubeconfig(yaml.safe_dump(document))
        _wait_for_rights(client)
        yield client
    finally:
        for resource, obj in reversed(created):
            with suppress(NotFoundError):
                kube.delete(resource, name(obj), namespace(obj), grace_seconds=0 if resource == PODS else None)


def _ccm() -> Iterator[tuple[Resource, Object]]:
    """A Deployment without a controller's help: its pods are the test's, with what every check looks at."""
    labels = {"k8s-app": NAME}
    container = {"name": NAME, "image": "registry.example/cloud-controller:0.1.0", "args": ["run", "--cloud=mycloud"]}
    volume = {"name": "config", "secret": {"secretName": CONFIG_SECRET}}
    spec = {"containers": [container], "volumes": [volume], "serviceAccountName": NAME, "nodeName": "nowhere"}
    yield SECRETS, _named(CONFIG_SECRET)
    yield SERVICE_ACCOUNTS, _named(NAME)
    yield LEASES, _named(NAME) | {"spec": {"holderIdentity": "", "leaseDurationSeconds": 15}}
    template = {"metadata": {"labels": labels}, "spec": {key: spec[key] for key in spec if key != "nodeName"}}
    yield (
        DEPLOYMENTS,
        _named(NAME) | {"spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}},
    )
    crashed = {"name": NAME, "image": "x", "imageID": "", "ready": False, "restartCount": 9}
    crashed |= {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    for pod, status in (
        (f"{NAME}-up", {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}),
        (f"{NAME}-down", {"phase": "Running", "containerStatuses": [crashed]}),
    ):
        yield PODS, _named(pod, labels) | {"spec": spec, "status": status}
    proxy = {"name": "kube-proxy", "image": "x", "command": ["kube-proxy", "--config=/config.conf"]}
    yield PODS, _named("kube-proxy-a") | {"spec": {"containers": [proxy], "nodeName": "nowhere"}}


def _named(name: str, labels: dict[str, str] | None = None) -> Object:
    return {"metadata": {"name": name, "namespace": SPACE, "labels": labels or {}}}


def _wait_for_rights(client: Kube) -> None:
    # Who may do what is known to the API server a moment after it was written.
    deadline = time.monotonic() + 30
    while True:
        try:
            client.list(PODS, SPACE)
            client.list(SERVICES)
            return
        except ForbiddenError:
            if time.monotonic() > deadline:
                raise


def examined(client: Kube) -> tuple[list[Result], set[tuple[str, str, str]], list[str]]:
    """What all checks say, what they asked for (verb, resource and name), and what of it was forbidden."""
    asked, forbidden = set[tuple[str, str, str]](), list[str]()
    transport: Any = client._transport
    original = transport.__class__._request

    def daemon(kube: Kube, *_: object) -> Daemon:
        guard = Safeguard(kube, SPACE, NAME, binding=Binding(cluster_uid(kube), ""))
        return Daemon("mycloud", ("node", "service"), PlanSettings(None, ServiceOptions(), safeguard=guard))

    def request(self: Any, method: str, path: str, *args: Any, **options: Any) -> Any:
        asked.add(_described(method, path))
        try:
            return original(self, method, path, *args, **options)
        except ForbiddenError as error:
            forbidden.append(str(error))
            raise

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transport.__class__, "_request", request)
        seen = Seen(lambda: client, no_cloud, daemon, Target(SPACE, NAME, NAME))
        return examine(ALL, seen), asked, forbidden


def test_a_scheduled_doctor_may_ask_all_that_its_checks_ask(doctor: Kube) -> None:
    results, _, forbidden = examined(doctor)

    assert forbidden == []
    assert {each.check.name for each in results if each.findings} >= {"ccm-pods", "leader"}


def test_a_scheduled_doctor_has_no_right_that_no_check_uses(doctor: Kube) -> None:
    _, asked, _ = examined(doctor)

    rights = cron_job.rights(DAEMON)
    unused = [
        (verb, resource, each)
        for rule in (*rights.cluster, *rights.namespaced)
        for verb in rule.verbs
        for resource in rule.resources
        for each in rule.resource_names or ("",)
        if not any((verb, resource) == found[:2] and each in ("", found[2]) for found in asked)
    ]
    # What the daemon lists, its plans list.
    assert [each for each in unused if each[0] != "list"] == []
