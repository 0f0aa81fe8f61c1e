"""Whether the cloud config is valid and the cloud answers with its credentials."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.cloud import AccessDenied, CloudError, InvalidConfiguration, Throttled
from cloud_controller.doctor.findings import Check, Finding
from cloud_controller.doctor.seen import Seen, Unreadable


def _config(seen: Seen) -> Iterator[Finding]:
    try:
        seen.opened_cloud()
    except Unreadable as error:
        if not isinstance(error.__cause__, InvalidConfiguration):
            raise
        yield Finding(
            what="the cloud config is invalid",
            evidence=(str(error),),
            remedy="correct it; the CCM ends at once with it",
        )


def _calls(seen: Seen) -> Iterator[Finding]:
    seen.opened_cloud()
    try:
        seen.cloud()
    except Unreadable as unreadable:
        error = unreadable.__cause__
        if not isinstance(error, CloudError):
            raise
        what, remedy = _what_and_remedy(error)
        yield Finding(what=what, evidence=(str(error),), remedy=remedy)


def _what_and_remedy(error: CloudError) -> tuple[str, str]:
    match error:
        case AccessDenied():
            return (
                "the cloud refuses the credentials, or what they may do",
                "replace the credentials, or give them the right that the error names",
            )
        case Throttled():
            return (
                "the cloud throttles the CCM's calls",
                "find who else calls this account's API as often; the cloud limits calls by account and region",
            )
        case InvalidConfiguration():
            return (
                "the cloud does not accept the cloud config",
                "correct the field that the error names in the cloud config",
            )
    return (
        "the cloud does not answer the CCM's calls",
        "check the endpoint, DNS and the way out (NAT, security groups, NetworkPolicy), then the cloud's status page",
    )


CONFIG = Check(
    name="cloud-config",
    holds="the cloud config is valid",
    why="the CCM ends at the start with an invalid cloud config",
    lines=("11.1.7",),
    page="runbooks/cloud-config.md",
    run=_config,
)
CALLS = Check(
    name="cloud-api",
    holds="the cloud answers, and accepts the credentials",
    why="the CCM can neither initialise nodes nor change load balancers and routes while its calls fail",
    lines=("11.1.1", "11.2.6", "10.1.1", "10.1.2", "10.4"),
    page="runbooks/cloud-api.md",
    run=_calls,
    after=frozenset({"cloud-config", "credential-expiry"}),
)
