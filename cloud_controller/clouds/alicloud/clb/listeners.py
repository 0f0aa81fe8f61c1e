"""Changes of CLB's listeners: the whole listener in one call, started after creation, with its tags."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.alicloud.clb.listener_fields import create_parameters, set_parameters
from cloud_controller.clouds.alicloud.clb.memory import Memory
from cloud_controller.clouds.alicloud.clb.reads import Reads
from cloud_controller.clouds.alicloud.clb.tagging import set_tags
from cloud_controller.clouds.alicloud.patience import PatientClient
from cloud_controller.clouds.alicloud.tags import tag_list
from cloud_controller.load_balancers.model import Listener
from cloud_controller.load_balancers.taken_over import TAKEN_FROM_TAG

_CREATE = {
    "tcp": "CreateLoadBalancerTCPListener",
    "udp": "CreateLoadBalancerUDPListener",
    "http": "CreateLoadBalancerHTTPListener",
    "https": "CreateLoadBalancerHTTPSListener",
}
_SET = {
    "tcp": "SetLoadBalancerTCPListenerAttribute",
    "udp": "SetLoadBalancerUDPListenerAttribute",
    "http": "SetLoadBalancerHTTPListenerAttribute",
    "https": "SetLoadBalancerHTTPSListenerAttribute",
}
_MADE_ANEW = ("protocol", "forward_port")
"""The attributes that no call changes."""
_BY_HASH = ("sch", "tch", "qch")
_APART = ("status", "domain_extensions")
"""The attributes with calls of their own."""
_UNLIMITED = -1


class Listeners:
    """Changes of listeners. Safe to share between threads."""

    def __init__(self, client: PatientClient, memory: Memory, reads: Reads) -> None:
        self._client = client
        self._memory = memory
        self._reads = reads

    def put(self, lb_id: str, listener: Listener, before: Listener | None, group_id: str | None) -> None:
        """Create the listener, or change it from what it is."""
        if before is not None and TAKEN_FROM_TAG in listener.tags and TAKEN_FROM_TAG not in before.tags:
            # Recorded before anything changes: an interruption must leave what the listener is given back to.
            set_tags(self._client, "listener", _resource(lb_id, before), listener.tags, before.tags)
            before = replace(before, tags=listener.tags)
        tags = listener.tags if before is None else before.tags
        if before is not None and _needs_another(before, listener):
            self.delete(lb_id, before)
            before = None
        if before is None:
            tags = {**tags, **listener.tags}
            self._create(lb_id, replace(listener, tags=tags), group_id)
        else:
            self._change(lb_id, listener, before, group_id)
        self._certify(lb_id, listener, before)
        status, was = _of(listener, "status"), "stopped" if before is None else _of(before, "status")
        if status != was:
            action = "StartLoadBalancerListener" if status == "running" else "StopLoadBalancerListener"
            self._call(action, lb_id, listener, ListenerProtocol=_of(listener, "protocol"))
        # Last: a listener that is given back is the Service's until all of it is as it was.
        set_tags(self._client, "listener", _resource(lb_id, listener), listener.tags, tags)

    def delete(self, lb_id: str, listener: Listener) -> None:
        """Delete the listener; a missing one is ignored."""
        with suppress(NotFound):
            self._call("DeleteLoadBalancerListener", lb_id, listener, ListenerProtocol=_of(listener, "protocol"))
        self._memory.certificates.forget(f"{lb_id}/{listener.port}")

    # ------------------------------------------------------------------------------------------------------ helpers

    def _create(self, lb_id: str, listener: Listener, group_id: str | None) -> None:
        self._call(
            _CREATE[_of(listener, "protocol")],
            lb_id,
            listener,
            **create_parameters(listener.attributes),
            Bandwidth=_UNLIMITED,
            VServerGroupId=group_id,
            Description=f"k8s/{listener.port}/{listener.protocol.lower()}",
            Tag=tag_list(listener.tags),
        )

    def _change(self, lb_id: str, listener: Listener, before: Listener, group_id: str | None) -> None:
        def settings(of: Listener) -> dict[str, Any]:
            return {name: _of(of, name) for name in listener.attributes if name not in _APART}

        if settings(listener) != settings(before) or listener.pool != before.pool:
            group = {"VServerGroup": "on", "VServerGroupId": group_id} if group_id else {}
            self._call(_SET[_of(listener, "protocol")], lb_id, listener, **set_parameters(listener.attributes), **group)

    def _certify(self, lb_id: str, listener: Listener, before: Listener | None) -> None:
        """Make the further certificates those of the listener."""
        wanted = dict(str(each).split(":", 1) for each in _words(listener))
        if _words(listener) == (() if before is None else _words(before)):
            return
        key = f"{lb_id}/{listener.port}"
        actual = {} if before is None else self._reads.certificates(lb_id, listener.port)
        with self._memory.changing(key):
            # The first change makes what is cached wrong, whatever becomes of the others.
            self._memory.certificates.forget(key)
            for domain, certificate in wanted.items():
                if domain not in actual:
                    self._call("CreateDomainExtension", lb_id, listener, Domain=domain, ServerCertificateId=certificate)
                elif actual[domain][1] != certificate:
                    changed = {"DomainExtensionId": actual[domain][0], "ServerCertificateId": certificate}
                    self._client.call("slb", "SetDomainExtensionAttribute", changed)
            for domain in actual.keys() - wanted.keys():
                self._client.call("slb", "DeleteDomainExtension", {"DomainExtensionId": actual[domain][0]})

    def _call(self, action: str, lb_id: str, listener: Listener, **parameters: Any) -> None:
        asked = {"LoadBalancerId": lb_id, "ListenerPort": listener.port, **parameters}
        self._client.call("slb", action, asked)


def _needs_another(before: Listener, listener: Listener) -> bool:
    """Whether no call makes `listener` of what there is."""
    if any(_of(before, name) != _of(listener, name) for name in _MADE_ANEW):
        return True
    was, wanted = _of(before, "scheduler"), _of(listener, "scheduler")
    # No call changes TCP listeners to another hash, or UDP listeners to one or from one; only those have hashes.
    return was != wanted and (wanted in _BY_HASH or (_of(listener, "protocol") == "udp" and was in _BY_HASH))


def _resource(lb_id: str, listener: Listener) -> str:
    return f"{lb_id}_{_of(listener, 'protocol')}_{listener.port}"


def _of(listener: Listener, name: str) -> Any:
    return listener.attributes.get(name)


def _words(listener: Listener) -> tuple[str, ...]:
    found = _of(listener, "domain_extensions")
    return found if isinstance(found, tuple) else ()
