"""Runs the volume controller: provisions, attaches, resizes and deletes the cloud's volumes.

Does the work of the CSI sidecars (external-provisioner, -attacher and -resizer), with their names of events,
annotations and finalizers. The rules are in `plan`, the calls in `apply`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cloud_controller.binding import UNBOUND, Binding, Evidence
from cloud_controller.cloud import Cloud
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.loop import ControllerContext, LoopController
from cloud_controller.controllers.seen_deletions import SeenDeletions
from cloud_controller.controllers.volume import objects as view
from cloud_controller.controllers.volume.apply import volumes_of
from cloud_controller.controllers.volume.observation import (
    VolumeObservation,
    leaving,
    may_be_orphan,
    pv_of,
    related,
    rests_on_absence,
    strays,
    to_read,
)
from cloud_controller.controllers.volume.operations import (
    AttachVolume,
    CreateVolume,
    DeleteVolume,
    DetachVolume,
    DiscardVolume,
    Refuse,
    ResizeVolume,
    TagVolume,
    Wait,
)
from cloud_controller.controllers.volume.plan import plan
from cloud_controller.kube import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    EventType,
    Handler,
    Informer,
    Kube,
    KubeApi,
    NotFoundError,
    Object,
    key,
    name,
    uid,
)
from cloud_controller.volumes import CLAIM_TAG, CLAIM_UID_TAG, Volume

__all__ = ["VolumeController", "VolumeInformers", "VolumeObservation", "evidence", "leaving", "observe", "plan"]

NAME = "volume"
COMPONENT = "volume-controller"
"""The source of its events."""

WINDOW = 0.1
"""Seconds for which changes are batched. Short, because a pod waits for several steps until its volume is ready."""
POLL = 0.5
"""Seconds between polls of operations in the cloud."""
ORPHAN_DELAY = 10.0
"""Seconds between the two checks that confirm an orphaned volume before its deletion."""

_CLOUD_WORK = (CreateVolume, AttachVolume, DetachVolume, DeleteVolume, DiscardVolume, ResizeVolume, TagVolume)


@dataclass(frozen=True)
class VolumeInformers:
    """The controller's informers, besides that of nodes."""

    claims: Informer
    pvs: Informer
    classes: Informer
    attachments: Informer

    @classmethod
    def of(cls, kube: Kube) -> VolumeInformers:
        """New informers, which the caller must start."""
        return cls(
            Informer(kube, PERSISTENT_VOLUME_CLAIMS),
            Informer(kube, PERSISTENT_VOLUMES),
            Informer(kube, STORAGE_CLASSES),
            Informer(kube, VOLUME_ATTACHMENTS),
        )

    def __iter__(self) -> Iterator[Informer]:
        return iter((self.claims, self.pvs, self.classes, self.attachments))


def observe(
    kube: KubeApi, cloud: Cloud, binding: Binding = UNBOUND, machines: InstanceSnapshot | None = None
) -> VolumeObservation:
    """Read all storage objects, nodes and volumes. `machines`: what other controllers have read.

    Raises `InvalidConfiguration` if the cloud has no volumes.
    """
    # Volumes first: if the claim of one is not in the later list, it is really gone.
    volumes = volumes_of(cloud).list()
    observation = _observation(
        cloud,
        volumes,
        binding,
        claims=kube.list(PERSISTENT_VOLUME_CLAIMS).items,
        pvs=kube.list(PERSISTENT_VOLUMES).items,
        classes=kube.list(STORAGE_CLASSES).items,
        attachments=kube.list(VOLUME_ATTACHMENTS).items,
        nodes=kube.list(NODES).items,
    )
    if more := to_read(observation, None) - observation.volumes.keys():
        found = {volume.id: volume for volume in volumes_of(cloud).list(more)}
        observation = replace(observation, volumes={**observation.volumes, **found})
    return replace(observation, anchored=_anchored(observation, machines or InstanceSnapshot(cloud.instances)))


class VolumeController(LoopController):
    """The daemon's loop: reconciles changes at once, and everything every `period` seconds."""

    name = NAME

    def __init__(
        self,
        context: ControllerContext,
        informers: VolumeInformers,
        *,
        period: float = 300.0,
        orphan_delay: float = ORPHAN_DELAY,
    ) -> None:
        """Raises `InvalidConfiguration` if the cloud does not support volumes."""
        super().__init__(context, COMPONENT, period=period, window=WINDOW)
        self._informers = informers
        self._cloud = volumes_of(context.cloud)
        self._known: dict[str, Volume] = {}
        self._preloaded = False
        # Ids of deleted volumes. Ids are never reused, so objects that still name one cost no more calls.
        self._gone: set[str] = set()
        self._orphan_delay = orphan_delay
        self._candidates: dict[str, float] = {}
        self._deleted_claims = SeenDeletions()
        # Unlike `_gone`, deleted by this process: the last one needs no proof that the account is the cluster's.
        self._deleted = SeenDeletions()
        informers.claims.add_handler(self._deleted_claims.handle)
        informers.claims.add_handler(self._triggers(_claim_keys, _claim_facts))
        informers.pvs.add_handler(self._triggers(_pv_keys, _pv_facts))
        informers.classes.add_handler(self._triggers(_class_keys, _class_facts))
        informers.attachments.add_handler(self._triggers(_attachment_keys, _attachment_facts))

    def concerns(self, old: Object | None, new: Object | None) -> bool:
        """See `LoopController.concerns`."""
        return old is None or new is None or _node_facts(old) != _node_facts(new)

    def evidence(self) -> Evidence:
        """See `Controller.evidence`. The first pass reuses this read."""
        self._known = {volume.id: volume for volume in self._cloud.list()}
        self._preloaded = True
        return evidence(self._observe())

    def reconcile(self, keys: frozenset[str] | None) -> Iterable[str]:
        """Run one pass; return the objects to retry."""
        if keys is None and not self._preloaded:
            self._known = {volume.id: volume for volume in self._cloud.list()}
            self._gone.clear()
        self._preloaded = False
        observation = self._observe()
        if keys is not None:
            # The base class uses bare names as keys of nodes.
            keys = related(observation, {each if "/" in each else f"node/{each}" for each in keys})
        stale = to_read(observation, keys) - self._gone
        if keys is None:
            stale -= self._known.keys()  # Just read.
        if stale:
            self._read(stale)
            observation = self._observe()
        candidates = [volume for volume in strays(observation, keys) if may_be_orphan(volume)]
        looked_at = {each for each in self._candidates if keys is None or f"volume/{each}" in keys}
        observation = replace(
            observation,
            confirmed=self._confirmed(candidates, looked_at),
            deleted_claims=self._deleted_claims.uids(),
            deleted_volumes=self._deleted.uids(),
        )
        observation = replace(observation, anchored=_anchored(observation, self.context.machines))
        planned = plan(observation, keys)
        results = self.apply(planned, about=keys)
        for action in planned:
            if isinstance(action.operation, Refuse):
                self.warn(action.operation.obj, action.operation.reason, action.operation.message)
            elif isinstance(action.operation, Wait):
                self.trigger_after(action.target, POLL)
        for result in results:
            if isinstance(result.answer, Volume):
                self._known[result.answer.id] = result.answer
            if result.ok and isinstance(result.action.operation, DeleteVolume | DiscardVolume):
                self._deleted.remember(result.action.operation.volume.id)
            if result.ok and isinstance(result.action.operation, _CLOUD_WORK):
                self.trigger_after(result.action.target, POLL)
        return [result.action.target for result in results if not result.ok]

    def _triggers(self, keys: Callable[[Object], list[str]], facts: Callable[[Object], object]) -> Handler:
        def handle(_type: EventType, old: Object | None, new: Object | None) -> None:
            # Ignore the controller's own writes and irrelevant fields.
            if old is None or new is None or facts(old) != facts(new):
                for each in keys(new or old or {}):
                    self.trigger(each)

        return handle

    def _observe(self) -> VolumeObservation:
        return _observation(
            self.context.cloud,
            self._known.values(),
            self.context.safeguard.binding,
            claims=self._informers.claims.items(),
            pvs=self._informers.pvs.items(),
            classes=self._informers.classes.items(),
            attachments=self._informers.attachments.items(),
            nodes=self.context.nodes.items(),
        )

    def _read(self, ids: set[str]) -> None:
        found = {volume.id: volume for volume in self._cloud.list(ids)}
        self._known = {each: volume for each, volume in self._known.items() if each not in ids} | found
        self._gone |= ids - found.keys()

    def _confirmed(self, candidates: Sequence[Volume], looked_at: Collection[str]) -> frozenset[str]:
        """The candidates that two reads of the API server, some time apart, have confirmed as orphans."""
        cleared = {*looked_at} - {volume.id for volume in candidates}
        self._candidates = {each: first for each, first in self._candidates.items() if each not in cleared}
        confirmed = set()
        now = time.monotonic()
        handles: set[str] | None = None
        for volume in candidates:
            first = self._candidates.get(volume.id)
            if first is not None and now < first + self._orphan_delay:
                self.trigger_after(f"volume/{volume.id}", first + self._orphan_delay - now)
                continue
            if handles is None:
                pvs = self.context.kube.list(PERSISTENT_VOLUMES).items
                handles = {view.handle(pv) for pv in pvs if pv["spec"].get("csi")}
            if volume.id in handles or self._claim_exists(volume):
                self._candidates.pop(volume.id, None)
            elif first is None:
                self._candidates[volume.id] = now
                self.trigger_after(f"volume/{volume.id}", self._orphan_delay)
            else:
                confirmed.add(volume.id)
        return frozenset(confirmed)

    def _claim_exists(self, volume: Volume) -> bool:
        """Whether the claim exists and may still use this volume, because it is not bound to another one."""
        space, _, claim_name = volume.tags.get(CLAIM_TAG, "").partition("/")
        if not (space and claim_name):
            return True  # Unknown claim: keep the volume.
        try:
            claim = self.context.kube.get(PERSISTENT_VOLUME_CLAIMS, claim_name, space)
        except NotFoundError:
            return False
        return uid(claim) == volume.tags[CLAIM_UID_TAG] and not claim["spec"].get("volumeName")


def _observation(
    cloud: Cloud,
    volumes: Iterable[Volume],
    binding: Binding,
    *,
    claims: Iterable[Object],
    pvs: Iterable[Object],
    classes: Iterable[Object],
    attachments: Iterable[Object],
    nodes: Iterable[Object],
) -> VolumeObservation:
    offered = volumes_of(cloud)
    return VolumeObservation(
        cluster_id=cloud.cluster_id,
        provisioner=offered.provisioner,
        driver=offered.driver,
        parameters=offered.parameters,
        largest_gib=offered.largest_gib,
        claims=tuple(claims),
        pvs=tuple(pvs),
        classes=tuple(classes),
        attachments=tuple(attachments),
        nodes=tuple(nodes),
        volumes={volume.id: volume for volume in volumes},
        binding=binding,
    )


def _anchored(observation: VolumeObservation, machines: InstanceSnapshot) -> bool:
    """See `VolumeObservation.anchored`; asks the cloud only if the plan depends on it."""
    return (
        not rests_on_absence(observation)
        or any(map(observation.owns, observation.volumes.values()))
        or machines.anchored(observation.nodes)
    )


def evidence(observation: VolumeObservation) -> Evidence:
    """Which cluster the volumes belong to."""
    found = [volume for volume in observation.volumes.values() if volume.belongs_to(observation.cluster_id)]
    alive = sum(
        volume.tags[CLAIM_UID_TAG] in observation.claim_by_uid or volume.id in observation.pvs_by_volume
        for volume in found
    )
    foreign: dict[str, list[str]] = {}
    for volume in found:
        if of := observation.binding.foreign_uid(volume.tags):
            foreign.setdefault(of, []).append(volume.id)
    return Evidence("volumes", len(found), alive, foreign)


# ---------------------------------------------------------------------------------------- keys and relevant fields


def _claim_keys(claim: Object) -> list[str]:
    return [f"claim/{key(claim)}"]


def _claim_facts(claim: Object) -> tuple[object, ...]:
    status = claim.get("status", {})
    annotations = view.provisioner_of(claim), view.selected_node(claim)
    return claim["spec"], annotations, view.is_deleting(claim), status.get("phase"), status.get("capacity")


def _pv_keys(pv: Object) -> list[str]:
    return [f"pv/{name(pv)}"]


def _pv_facts(pv: Object) -> tuple[object, ...]:
    metadata = pv["metadata"]
    noted = metadata.get("labels"), metadata.get("annotations"), metadata.get("finalizers")
    return pv["spec"], noted, view.is_deleting(pv), pv.get("status", {}).get("phase")


def _class_keys(storage_class: Object) -> list[str]:
    return [f"class/{name(storage_class)}"]


def _class_facts(storage_class: Object) -> object:
    return storage_class["metadata"]["resourceVersion"]


def _attachment_keys(attachment: Object) -> list[str]:
    return [f"attachment/{name(attachment)}", f"pv/{pv_of(attachment)}"]


def _attachment_facts(attachment: Object) -> tuple[object, ...]:
    attached = attachment.get("status", {}).get("attached")
    return attachment["metadata"].get("finalizers"), view.is_deleting(attachment), attached


def _node_facts(node: Object) -> tuple[object, ...]:
    return node["metadata"].get("labels"), node["spec"].get("providerID")
