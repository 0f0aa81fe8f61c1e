"""NLB: the asynchronous jobs of its changes, and how an object goes through its states meanwhile.

A change is checked when it is asked for; it takes effect when its job is done. A job that fails changes nothing but
the state, which is as before; what it was to create is gone, a load balancer stays as CreateFailed.
"""

from __future__ import annotations

import uuid
from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.nlb_zones import release
from local.alicloud.products import NLB, TABLE
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object
from local.standin.world import FAILED, JOB, RUNNING, SUCCEEDED

BALANCER, LISTENER, GROUP = "nlb", "nlb listener", "server group"

ILLEGAL: Final = "IllegalParam.{}"
_STATUSES: Final = {RUNNING: "Processing", SUCCEEDED: "Succeeded", FAILED: "Failed"}
_CHANGE: Final = "nlb change"
_REMOVE: Final = "nlb remove"


@NLB.action("GetJobStatus")
def get_job_status(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Processing, Succeeded or Failed."""
    asked = arguments["JobId"]
    missing = Refusal(404, "ResourceNotFound.Job", f"The specified resource of job is not found: {asked}.")
    return {"Status": _STATUSES[account.find(JOB, asked, missing)["status"]]}


@NLB.action("ListAsynJobs")
def list_asyn_jobs(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Of several jobs; unknown ones are left out."""
    asked = arguments.get("JobIds", [])
    found = [job for each in asked if (job := account.store.get(JOB, each)) is not None]
    return {
        "Jobs": [{"Id": job["id"], "Status": _STATUSES[job["status"]]} for job in found],
        "TotalCount": str(len(found)),
    }


def begin(account: Account, kind: str, id: str, during: str, after: str, **changes: Any) -> str:
    """Start a change of an object: its state is `during`, then `after` with these changes. Returns the job's id."""
    before = account.fill(kind, id)["status"]
    account.fill(kind, id, status=during)
    facts = {"kind": kind, "id": id, "before": before, "after": after, "changes": changes}
    return str(account.start_job(str(uuid.uuid4()), "nlb", _CHANGE, **facts)["id"])


def begin_removal(account: Account, kind: str, id: str, during: str) -> str:
    """Start the removal of an object. Returns the job's id."""
    before = account.fill(kind, id)["status"]
    account.fill(kind, id, status=during)
    return str(account.start_job(str(uuid.uuid4()), "nlb", _REMOVE, kind=kind, id=id, before=before)["id"])


@TABLE.step(_CHANGE)
def _finish(account: Account, facts: Object) -> None:
    kind, key = facts["kind"], facts["id"]
    found = account.store.get(kind, key)
    if found is None:  # gone with its load balancer
        return
    if "zones" in facts["changes"]:
        old, new = found["zones"], facts["changes"]["zones"]
        release(account, *((new, old) if facts["failed"] else (old, new)))
    if not facts["failed"]:
        account.fill(kind, key, **facts["changes"], status=facts["after"])
    elif facts["before"] == "":  # it was to be created
        if kind == BALANCER:
            account.fill(kind, key, status="CreateFailed")
        else:
            account.store.remove(kind, key)
    else:
        account.fill(kind, key, status=facts["before"])


@TABLE.step(_REMOVE)
def _remove(account: Account, facts: Object) -> None:
    kind, key = facts["kind"], facts["id"]
    if facts["failed"]:
        account.fill(kind, key, status=facts["before"])
        return
    if kind == BALANCER:
        release(account, account.fill(kind, key)["zones"])
        for each in account.store.all(LISTENER):
            if each["balancer"] == key:
                account.store.remove(LISTENER, each["id"])
    account.store.remove(kind, key)


def not_found(what: str, id: str) -> Refusal:
    """The error for an unknown object."""
    return Refusal(404, f"ResourceNotFound.{what}", f"The specified resource of {what} is not found: {id}.")


def require_status(what: str, found: Object, *allowed: str) -> Object:
    """The object; raises Refusal in other states."""
    if found["status"] not in allowed:
        message = f"The status of {what} [{found['id']}] is incorrect: {found['status']}."
        raise Refusal(400, f"IncorrectStatus.{what}", message)
    return found


def balancer_of(account: Account, arguments: Arguments) -> Object:
    """The load balancer that a request names."""
    asked = arguments["LoadBalancerId"]
    return account.find(BALANCER, asked, not_found("loadBalancer", asked))


def active(account: Account, arguments: Arguments) -> Object:
    """The load balancer that a request is to change. Raises Refusal unless it is Active."""
    return require_status("loadbalancer", balancer_of(account, arguments), "Active")
