"""Makes changes of NLBs: every write is safe to repeat, and what the API is still configuring is waited for."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.alicloud.nlb.api import Api
from cloud_controller.clouds.alicloud.nlb.jobs import Jobs, job_in
from cloud_controller.clouds.alicloud.nlb.wire import Params
from cloud_controller.clouds.alicloud.tags import stored, tag_list
from cloud_controller.clouds.common.concurrent_calls import batches

_MOST = 20
"""Objects in one call."""
_WITHOUT_TOKEN = frozenset({"LoadBalancerJoinSecurityGroup", "LoadBalancerLeaveSecurityGroup"})


class Writes:
    """The writes of one account. Each returns its jobs, which nobody has waited for yet."""

    def __init__(self, client: Api, jobs: Jobs) -> None:
        self._client = client
        self.jobs = jobs

    def send(self, action: str, params: Params) -> tuple[Params, dict[str, str]]:
        """The answer, and the job that it began. Raises Postponed if the object stays busy."""
        if action not in _WITHOUT_TOKEN:
            # The same token in each attempt, so that a repeated one has no second effect.
            params = {"ClientToken": str(uuid.uuid4()), **params}
        answer = self.jobs.patience.call(lambda: self._client.call("nlb", action, params), f"nlb {action}")
        what = next((f"{action} of {params[key]}" for key in _IDS if key in params), action)
        return answer, job_in(answer, what)

    def finish(self, action: str, params: Params) -> Params:
        """The answer, once its job has succeeded."""
        answer, jobs = self.send(action, params)
        self.jobs.require(jobs)
        return answer

    def delete(self, action: str, params: Params) -> dict[str, str]:
        """Delete an object that may already be gone."""
        try:
            return self.send(action, params)[1]
        except NotFound:
            return {}

    def retag(self, kind: str, id: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Change an object's tags from `before` to `after`. `kind`: loadbalancer, listener, servergroup."""
        self.retag_all(kind, {id: (before, after)})

    def retag_all(self, kind: str, changes: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]) -> None:
        """The same for several objects, by ID: those whose tags change alike are changed at once."""
        added: dict[tuple[tuple[str, str], ...], list[str]] = {}
        removed: dict[tuple[str, ...], list[str]] = {}
        for changed, tags_of_it in changes.items():
            before, after = map(stored, tags_of_it)
            added.setdefault(tuple(sorted(after.items() - before.items())), []).append(changed)
            removed.setdefault(tuple(sorted(before.keys() - after.keys())), []).append(changed)
        # Added first: an interruption must leave a mark of who owned it.
        for tags, ids in added.items():
            for batch in batches(ids, _MOST) if tags else ():
                self.send("TagResources", {"ResourceType": kind, "ResourceId": [*batch], "Tag": tag_list(dict(tags))})
        for keys, ids in removed.items():
            for batch in batches(ids, _MOST) if keys else ():
                self.send("UntagResources", {"ResourceType": kind, "ResourceId": [*batch], "TagKey": [*keys]})


_IDS = ("ServerGroupId", "ListenerId", "LoadBalancerId")
