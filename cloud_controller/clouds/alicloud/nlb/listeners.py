"""Creates, changes and deletes the listeners of NLBs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.alicloud.nlb.memory import KnownListener, Memory
from cloud_controller.clouds.alicloud.nlb.wire import listener_params, new_listener_params, words
from cloud_controller.clouds.alicloud.nlb.writes import Writes
from cloud_controller.clouds.alicloud.tags import tag_list
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.load_balancers.model import Listener, Owner
from cloud_controller.load_balancers.taken_over import TAKEN_FROM_TAG

_FIXED = ("protocol", "port_range")
"""Attributes that a listener cannot change."""
_MOST_CERTIFICATES = 15
_ASSOCIATE = "AssociateAdditionalCertificatesWithListener"
_DISASSOCIATE = "DisassociateAdditionalCertificatesWithListener"


class Listeners:
    """The listeners of one cluster's load balancers. Safe to share between threads."""

    def __init__(self, writes: Writes, memory: Memory) -> None:
        self._writes = writes
        self._memory = memory

    def put(
        self, lb_id: str, listener: Listener, group_id: str, present: KnownListener | None, tags: Mapping[str, str]
    ) -> tuple[KnownListener, dict[str, str]]:
        """Create the listener, or change the one on its port; a new one also gets `tags`. Returns its jobs."""
        if present is not None and TAKEN_FROM_TAG in listener.tags and TAKEN_FROM_TAG not in present.listener.tags:
            present = self._marked(present, listener.tags)
        if present is not None and any(
            present.listener.attributes.get(key) != listener.attributes.get(key) for key in _FIXED
        ):
            self._writes.jobs.require(self.delete(present.id))
            # A new listener begins with the tags of the old: it may be one that is given back.
            made, jobs = self.create(lb_id, listener, group_id, {**present.listener.tags, **tags})
            after = {**tags, **listener.tags}
            jobs = self._retag(made, after, jobs)
            return replace(made, listener=replace(made.listener, tags=after)), jobs
        if present is None:
            return self.create(lb_id, listener, group_id, tags)
        return self._change(listener, group_id, present)

    def delete(self, listener_id: str) -> dict[str, str]:
        """Delete a listener that may already be gone. Returns its job."""
        self._memory.shown(listener_id)
        self._memory.certificates.forget(listener_id)
        return self._writes.delete("DeleteListener", {"ListenerId": listener_id})

    def create(
        self, lb_id: str, listener: Listener, group_id: str, tags: Mapping[str, str], token: str | None = None
    ) -> tuple[KnownListener, dict[str, str]]:
        """A new listener, and its jobs. The same `token` makes no second one."""
        tags = {**tags, **listener.tags}
        params = {
            "LoadBalancerId": lb_id,
            "ServerGroupId": group_id,
            "Tag": tag_list(tags),
            **new_listener_params(listener, Owner.of_tags(tags)),
            **({"ClientToken": token} if token else {}),
        }
        answer, jobs = self._writes.send("CreateListener", params)
        listener_id = str(answer["ListenerId"])
        view: dict[str, Any] = {**params, "ListenerId": listener_id, "Tags": tag_list(tags), "JobId": [*jobs]}
        self._memory.made_listeners.put(listener_id, view, anew=True)
        further = words(listener.attributes.get("additional_certificates"))
        if further:
            self._writes.jobs.require(jobs)
            jobs = self._certificates(_ASSOCIATE, listener_id, further)
        self._memory.certificates.put(listener_id, further, anew=True)
        return KnownListener(listener_id, replace(listener, tags=tags)), jobs

    def _marked(self, present: KnownListener, tags: Mapping[str, str]) -> KnownListener:
        """The listener with its new owner and the record of what it was. They come before all other changes: once it
        has changed, nothing else tells what to give back."""
        before = present.listener.tags
        after = {**before, **tags}
        self._memory.shown(present.id)
        self._writes.retag("listener", present.id, before, after)
        return replace(present, listener=replace(present.listener, tags=after))

    def _change(
        self, listener: Listener, group_id: str, present: KnownListener
    ) -> tuple[KnownListener, dict[str, str]]:
        self._memory.shown(present.id)
        before, jobs = present.listener, dict[str, str]()
        attributes = {**before.attributes, **listener.attributes}
        changed = replace(before, pool=listener.pool, attributes=attributes, tags=listener.tags)
        # If nothing differs, what was read is old: then all is set.
        if listener_params(before) != listener_params(changed) or before.pool != changed.pool or before == changed:
            params = {"ListenerId": present.id, "ServerGroupId": group_id, **listener_params(changed)}
            jobs = self._writes.send("UpdateListenerAttribute", params)[1]
        was, will_be = ({*words(each.get("additional_certificates"))} for each in (before.attributes, attributes))
        for action, certificates in ((_ASSOCIATE, will_be - was), (_DISASSOCIATE, was - will_be)):
            if certificates:
                self._writes.jobs.require(jobs)
                jobs = self._certificates(action, present.id, sorted(certificates))
        if was != will_be:
            self._memory.certificates.put(present.id, tuple(sorted(will_be)), anew=True)
        if attributes.get("running") and not before.attributes.get("running", True):
            self._writes.jobs.require(jobs)
            jobs = self._writes.send("StartListener", {"ListenerId": present.id})[1]
        return KnownListener(present.id, changed), self._retag(present, changed.tags, jobs)

    def _retag(self, before: KnownListener, after: Mapping[str, str], jobs: dict[str, str]) -> dict[str, str]:
        """Set its tags, and return the jobs that are not done."""
        tags = before.listener.tags
        if TAKEN_FROM_TAG in tags and TAKEN_FROM_TAG not in after:
            # It is the Service's until all of it is as it was.
            self._writes.jobs.require(jobs)
            jobs = {}
        if tags != after:
            self._memory.shown(before.id)
            self._writes.retag("listener", before.id, tags, after)
        return jobs

    def _certificates(self, action: str, listener_id: str, certificates: tuple[str, ...] | list[str]) -> dict[str, str]:
        jobs: dict[str, str] = {}
        with self._memory.cache.changing(listener_id):
            for batch in batches(certificates, _MOST_CERTIFICATES):
                self._writes.jobs.require(jobs)
                params = {"ListenerId": listener_id, "AdditionalCertificateIds": [*batch]}
                try:
                    jobs = self._writes.send(action, params)[1]
                except NotFound:
                    if action == _ASSOCIATE:
                        raise
        return jobs
