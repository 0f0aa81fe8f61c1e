"""mycloud's volumes: disks in a zone, attached to one machine at a time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.mycloud.client import Client, Object, known_state
from cloud_controller.clouds.mycloud.names import DRIVER, PROVIDER_NAME, PROVISIONER
from cloud_controller.clouds.mycloud.provider_ids import machine_in
from cloud_controller.clouds.mycloud.scope import Scope
from cloud_controller.load_balancers.model import CLUSTER_TAG
from cloud_controller.volumes import Attachment, AttachmentState, Volume, VolumeRequest, VolumeState

PARAMETERS = {"type": ("standard",)}
LARGEST_GIB = 1024

_REGION = "local"
"""mycloud's only region, which its volumes do not name."""
_STATES = {
    "creating": VolumeState.CREATING,
    "available": VolumeState.AVAILABLE,
    "failed": VolumeState.FAILED,
    "deleting": VolumeState.DELETING,
}
_ID = re.compile(r"vol-[0-9a-f]{1,32}")


class MyCloudVolumes:
    """The volumes with one cluster's tag, and others by ID."""

    provisioner = PROVISIONER
    driver = DRIVER
    parameters: Mapping[str, Collection[str]] = PARAMETERS
    largest_gib = LARGEST_GIB

    def __init__(self, client: Client, scope: Scope) -> None:
        self._client = client
        self._scope = scope

    def list(self, ids: Collection[str] | None = None) -> Sequence[Volume]:
        """List in pages. Volumes missing in a list by IDs are read singly, because lists may lag behind.

        IDs come from PersistentVolumes, where anything may stand: what cannot be one is not asked for, because it would
        fail the list of all.
        """
        if ids is None:
            return [
                _volume(found) for found in self._client.list("volumes", tags={CLUSTER_TAG: self._scope.cluster_id})
            ]
        ids = {*filter(_ID.fullmatch, ids)}
        found = [_volume(each) for each in self._client.list("volumes", ids=ids)]
        return [*found, *self._each({*ids} - {volume.id for volume in found})]

    def create(self, request: VolumeRequest) -> Volume:
        """Begin to create it; repeated with the same token, returns the same volume."""
        body = {
            "name": request.name,
            "zone": request.zone,
            "size_gib": request.size_gib,
            "tags": dict(request.tags),
            "client_token": request.client_token,
            **request.parameters,
        }
        return _volume(self._client.create("volumes", body))

    def attach(self, id: str, provider_id: str) -> Volume:
        """Begin to attach it. Raises Conflict that names the machine if it is attached elsewhere."""
        return self._change(id, "attach", {"machine_id": machine_in("spec.providerID", provider_id)})

    def detach(self, id: str, provider_id: str) -> Volume | None:
        """Begin to detach it; None if the volume does not exist."""
        try:
            return self._change(id, "detach", {"machine_id": machine_in("spec.providerID", provider_id)})
        except NotFound:
            return None

    def resize(self, id: str, size_gib: int) -> Volume:
        """Begin to enlarge it."""
        return self._change(id, "resize", {"size_gib": size_gib})

    def tag(self, id: str, tags: Mapping[str, str]) -> Volume:
        """Set exactly these tags."""
        return _volume(self._client.update("volumes", id, {"tags": dict(tags)}))

    def delete(self, id: str) -> None:
        """Begin to delete it; a missing volume is a success."""
        try:
            self._client.delete("volumes", id)
        except NotFound:
            return

    def _change(self, id: str, verb: str, body: Object) -> Volume:
        # Done twice is done once.
        return _volume(self._client.post(f"volumes/{id}:{verb}", body, idempotent=True))

    def _each(self, ids: Collection[str]) -> Iterator[Volume]:
        for each in sorted(ids):
            try:
                yield _volume(self._client.get("volumes", each))
            except NotFound:
                continue


def _volume(volume: Object) -> Volume:
    attachment = volume["attachment"]
    attachments: tuple[Attachment, ...] = ()
    if attachment is not None:
        # A volume and its machine are always in one zone.
        provider_id = f"{PROVIDER_NAME}://{_REGION}/{volume['zone']}/{attachment['machine_id']}"
        attachments = (Attachment(provider_id, AttachmentState(attachment["state"])),)
    return Volume(
        id=volume["id"],
        name=volume["name"],
        zone=volume["zone"],
        region=_REGION,
        size_gib=volume["size_gib"],
        state=known_state(volume, _STATES),
        state_reason=volume["state_reason"] or "",
        attachments=attachments,
        tags=volume["tags"],
    )
