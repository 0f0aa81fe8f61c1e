"""Whatever happens to claims, attachments and the daemon: at rest each claim has one volume, where its pod is, no more.

As `test_load_balancer_any_history`, for the controller of volumes, on mycloud's real API. What kube-controller-manager
does (binding, attaching) is done by hand.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.loop import ControllerContext
from cloud_controller.controllers.volume.controller import VolumeController, VolumeInformers
from cloud_controller.kube import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from cloud_controller.metrics import Metrics
from tests.cloud_controller.clouds.mycloud.data_plane import settle_volumes
from tests.cloud_controller.clouds.mycloud.kubernetes_in_memory import (
    Crash,
    InMemoryInformer,
    one_pass,
)
from tests.cloud_controller.clouds.mycloud.random_histories import (
    History,
    NewSite,
    kinds_of_faults,
    last_writes,
    numbers_of_faults,
    run_histories,
)
from tests.cloud_controller.guard import guard

if TYPE_CHECKING:
    from cloud_controller.kube import Object
    from tests.cloud_controller.clouds.conftest import Json

KINDS = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, VOLUME_ATTACHMENTS)
CLAIMS = ("a", "b", "c")
WORKERS = ("worker-0", "worker-1")
PASSES = 6
"""Passes over everything after which all is at rest: a volume comes, and goes, in several steps."""

names = st.sampled_from(CLAIMS)
operations = st.sampled_from(["*", "* /v1/volumes*", "GET /v1/volumes*", "POST /v1/volumes", "POST *:*", "DELETE *"])


class Process:
    """The controller manager, as far as volumes are concerned."""

    def __init__(self, world: World) -> None:
        cloud, api, clock = world.new_cloud(), world.api, world.clock
        self.informers = [InMemoryInformer(api, resource) for resource in (*KINDS, NODES)]
        storage: list[Any] = [*self.informers]
        machines = InstanceSnapshot(cloud.instances, clock=clock)
        self.safeguard = guard(api)
        context = ControllerContext(api, cloud, storage.pop(), Metrics(), machines, self.safeguard, workers=1)
        self.controller = VolumeController(context, VolumeInformers(*storage), orphan_delay=0.0)
        self.controller._queue._clock = clock
        for informer in self.informers:
            informer.relist()


class World(History):
    """A site, an API server and the controller of volumes."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = itertools.count(1)
        self.machines: dict[str, str] = {}
        self.retained: set[str] = set()
        """The volumes of claims that are gone, and left them on purpose."""
        self.decided: dict[str, str] = {}
        """What becomes of the volume of a claim, by its UID, where somebody has changed that."""
        self.process: Process | None = None

    @initialize(claims=st.dictionaries(names, st.sampled_from(["delete", "retain"]), min_size=1))
    def begin(self, claims: dict[str, str]) -> None:
        for name in WORKERS:
            machine = self.site.machine(name)
            self.machines[name] = machine["id"]
            labels = {"topology.kubernetes.io/zone": machine["zone"], "topology.kubernetes.io/region": "local"}
            spec = {"providerID": provider_id(machine)}
            self.api.put(NODES, {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {}})
        for policy in ("Delete", "Retain"):
            self.api.put(
                STORAGE_CLASSES,
                {
                    "metadata": {"name": policy.lower()},
                    "provisioner": "mycloud.io/volume",
                    "reclaimPolicy": policy,
                    "allowVolumeExpansion": True,
                    "volumeBindingMode": "Immediate",
                },
            )
        others = {"kubernetes.io/cluster": "c-other", "kubernetes.io/claim-uid": "uid-1", "kubernetes.io/claim": "a/b"}
        for number, tags in enumerate([{}, others]):
            body = {"name": f"foreign-{number}", "zone": "zone-b", "size_gib": 1, "tags": tags}
            self.site.client.create("volumes", body)
        settle_volumes(self.site)
        self.foreign = self._volumes()
        self.start()
        for name, policy in claims.items():
            self.a_claim_is_made(name, policy, size=1)
        self.come_to_rest()

    def end(self) -> None:
        if self.process:
            self.come_to_rest()
            assert self.process.controller.events.close(60)

    # --------------------------------------------------------------------------------------------------------- users

    @rule(name=names, policy=st.sampled_from(["delete", "retain"]), size=st.integers(1, 4))
    def a_claim_is_made(self, name: str, policy: str, size: int) -> None:
        if f"default/{name}" in self.claims:
            return
        claim: Object = {
            "metadata": {
                "namespace": "default",
                "name": name,
                "annotations": {"volume.kubernetes.io/storage-provisioner": "mycloud.io/volume"},
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": policy,
                "resources": {"requests": {"storage": f"{size}Gi"}},
            },
            "status": {"phase": "Pending"},
        }
        self.api.put(PERSISTENT_VOLUME_CLAIMS, claim)

    @rule(name=names, more=st.integers(1, 3))
    def a_claim_asks_for_more(self, name: str, more: int) -> None:
        def grow(claim: Object) -> None:
            requests = claim["spec"]["resources"]["requests"]
            requests["storage"] = f"{int(requests['storage'].removesuffix('Gi')) + more}Gi"

        claim = self.claims.get(f"default/{name}")
        if claim and claim["status"]["phase"] == "Bound":
            self.api.change(PERSISTENT_VOLUME_CLAIMS, f"default/{name}", grow)

    @rule(name=names)
    def a_claim_is_deleted(self, name: str) -> None:
        claim = self.claims.get(f"default/{name}")
        if claim is None:
            return
        for attachment in self._attachments_of(claim):
            self.api.remove(VOLUME_ATTACHMENTS, attachment)
        pv = self.api.objects(PERSISTENT_VOLUMES).get(claim["spec"].get("volumeName", ""))
        if pv is not None and pv["spec"]["persistentVolumeReclaimPolicy"] == "Retain":
            self.retained.add(pv["spec"]["csi"]["volumeHandle"])
        self.api.remove(PERSISTENT_VOLUME_CLAIMS, f"default/{name}")

    @rule(name=names, policy=st.sampled_from(["Delete", "Retain"]))
    def somebody_decides_anew_what_becomes_of_its_volume(self, name: str, policy: str) -> None:
        claim = self.claims.get(f"default/{name}")
        if claim and claim["status"]["phase"] == "Bound":
            change = {"persistentVolumeReclaimPolicy": policy}
            self.api.change(PERSISTENT_VOLUMES, claim["spec"]["volumeName"], lambda pv: pv["spec"].update(change))
            self.decided[claim["metadata"]["uid"]] = policy

    @rule()
    def somebody_deletes_what_stands_for_volumes_to_be_kept(self) -> None:
        for name, pv in [*self.api.objects(PERSISTENT_VOLUMES).items()]:
            retained = pv["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
            if retained and pv.get("status", {}).get("phase") == "Released":
                self.api.remove(PERSISTENT_VOLUMES, name)

    @rule(name=names, node=st.sampled_from(WORKERS))
    def a_pod_comes_to_a_node(self, name: str, node: str) -> None:
        claim = self.claims.get(f"default/{name}")
        if claim and claim["status"]["phase"] == "Bound" and not self._attachments_of(claim):
            source = {"persistentVolumeName": claim["spec"]["volumeName"]}
            spec = {"attacher": "mycloud.io", "nodeName": node, "source": source}
            metadata = {"name": f"csi-{next(self.numbers)}", "annotations": {}}
            self.api.put(VOLUME_ATTACHMENTS, {"metadata": metadata, "spec": spec, "status": {"attached": False}})

    @rule(name=names)
    def its_pod_goes(self, name: str) -> None:
        claim = self.claims.get(f"default/{name}")
        for attachment in self._attachments_of(claim) if claim else []:
            self.api.remove(VOLUME_ATTACHMENTS, attachment)

    # --------------------------------------------------------------------------------------- the daemon, its troubles

    @rule(operation=operations, kind=kinds_of_faults, count=numbers_of_faults)
    def the_next_calls_fail(self, operation: str, kind: str, count: int) -> None:
        self.faults.append((operation, kind, count))

    @rule()
    def lists_are_behind(self) -> None:
        self.site.set_lag(3600)

    @rule(held=st.integers(0, len(KINDS)))
    def a_watch_falls_behind(self, held: int) -> None:
        self._process.informers[held].held = True

    @rule(relist=st.booleans())
    def the_watches_catch_up(self, relist: bool) -> None:
        for informer in self._process.informers:
            informer.relist() if relist else informer.resume()

    @rule()
    def start(self) -> None:
        if self.process:
            assert self.process.controller.events.close(60)
        self.process = Process(self)

    @rule(everything=st.booleans(), last_write=last_writes, cloud_works=st.booleans())
    def the_controller_works(self, everything: bool, last_write: int | None, cloud_works: bool) -> None:
        self.writes_left.count = last_write
        self._work(everything=everything)
        self.writes_left.count = None
        if cloud_works:
            settle_volumes(self.site)
        self._kube_controller_manager_works()

    @rule(last_write=last_writes)
    def come_to_rest(self, last_write: int | None = None) -> None:
        self.site.set_lag(0)
        self.the_watches_catch_up(relist=False)
        self.writes_left.count = last_write
        for number in range(2 * PASSES):
            if number == PASSES:
                self.writes_left.count, self.api.refusals = None, 0
            self._work(everything=True)
            settle_volumes(self.site)
            self._kube_controller_manager_works()
            self.api.confirm_all(self._process.safeguard)
            self.clock.sleep(1000)
        self._check()
        before = (self.site.writes(), self.api.writes)
        assert self._work(everything=True)
        assert (self.site.writes(), self.api.writes) == before

    def _work(self, *, everything: bool) -> bool:
        try:
            with self.faulty():
                return one_pass(self._process.controller, everything=everything)
        except Crash:
            self.start()
            return False

    # ------------------------------------------------------------------------------------------- the rest of the world

    def _kube_controller_manager_works(self) -> None:
        by_uid = {claim["metadata"]["uid"]: claim for claim in self.claims.values()}
        for name, pv in [*self.api.objects(PERSISTENT_VOLUMES).items()]:
            claim = by_uid.get(pv["spec"]["claimRef"]["uid"])
            phase = pv.get("status", {}).get("phase", "Pending")
            if claim is None:
                # One whose claim went before they were bound is released too.
                if phase != "Released":
                    if phase != "Bound" and pv["spec"]["persistentVolumeReclaimPolicy"] == "Retain":
                        self.retained.add(pv["spec"]["csi"]["volumeHandle"])
                    self.api.change(PERSISTENT_VOLUMES, name, lambda pv: pv.update(status={"phase": "Released"}))
            elif phase != "Bound" and not pv["metadata"].get("deletionTimestamp"):
                self.api.change(PERSISTENT_VOLUMES, name, lambda pv: pv.update(status={"phase": "Bound"}))

                def bind(bound: Object, name: str = name, pv: Object = pv) -> None:
                    bound["spec"]["volumeName"] = name
                    bound["status"] = {"phase": "Bound", "capacity": dict(pv["spec"]["capacity"])}

                self.api.change(PERSISTENT_VOLUME_CLAIMS, f"default/{claim['metadata']['name']}", bind)

    # -------------------------------------------------------------------------------------------------------- at rest

    def _check(self) -> None:
        volumes = self._volumes()
        assert {each: volumes.pop(each, None) for each in self.foreign} == self.foreign
        assert self.retained <= volumes.keys()
        for each in self.retained:
            assert volumes.pop(each)["attachment"] is None
        for claim in self.claims.values():
            wanted = claim["spec"]["resources"]["requests"]["storage"]
            assert claim["status"] == {"phase": "Bound", "capacity": {"storage": wanted}}
            pv = self.api.objects(PERSISTENT_VOLUMES)[f"pvc-{claim['metadata']['uid']}"]
            assert pv["spec"]["capacity"]["storage"] == wanted
            policy = self.decided.get(claim["metadata"]["uid"], claim["spec"]["storageClassName"])
            assert pv["spec"]["persistentVolumeReclaimPolicy"].lower() == policy.lower()
            volume = volumes.pop(pv["spec"]["csi"]["volumeHandle"])
            assert f"{volume['size_gib']}Gi" == wanted
            assert volume["tags"]["kubernetes.io/claim-uid"] == claim["metadata"]["uid"]
            attachments = [self.api.objects(VOLUME_ATTACHMENTS)[name] for name in self._attachments_of(claim)]
            assert [each["status"]["attached"] for each in attachments] in ([], [True])
            on = [{"machine_id": self.machines[each["spec"]["nodeName"]], "state": "attached"} for each in attachments]
            assert volume["attachment"] == (on[0] if on else None)
        assert volumes == {}, "nobody needs these"
        for resource in KINDS:
            stuck = [key for key, obj in self.api.objects(resource).items() if obj["metadata"].get("deletionTimestamp")]
            assert stuck == [], f"a finalizer of these {resource.plural} is stuck"

    # -------------------------------------------------------------------------------------------------------- helpers

    @property
    def claims(self) -> dict[str, Object]:
        return self.api.objects(PERSISTENT_VOLUME_CLAIMS)

    @property
    def _process(self) -> Process:
        assert self.process is not None
        return self.process

    def _volumes(self) -> dict[str, Json]:
        return {volume["id"]: volume for volume in self.site.client.list("volumes")}

    def _attachments_of(self, claim: Object) -> list[str]:
        pv = claim["spec"].get("volumeName")
        found = self.api.objects(VOLUME_ATTACHMENTS).items()
        return [name for name, each in found if each["spec"]["source"]["persistentVolumeName"] == pv]


def test_the_last_volume_goes_unconfirmed_though_no_node_is_left(new_site: NewSite) -> None:
    world = type("Scaled", (World,), {"new_site": staticmethod(new_site)})()
    world.begin({"a": "delete"})
    for name in WORKERS:
        world.api.remove(NODES, name)
    world.a_claim_is_deleted("a")

    for _ in range(PASSES):
        world.the_controller_works(everything=True, last_write=None, cloud_works=True)

    assert world.process.safeguard.held() == ()
    assert world.api.objects(PERSISTENT_VOLUMES) == {}
    world.teardown()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_at_rest_every_claim_has_one_volume_and_no_other_is_left(
    new_site: NewSite,
) -> None:
    run_histories(World, new_site, share=5)
