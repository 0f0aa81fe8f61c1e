"""Rule: a cloud controller manager's credential that lasts is replaced in time: its Secret says when it expires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial

from cloud_controller.manifests import EXPIRES
from policy import clouds
from policy.cloud_configs import ccms_reading, entries
from policy.credentials import credentials, is_name
from policy.objects import dig
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule, setting
from policy.subjects import SECRET, Subject
from policy.texts import settings
from policy.unknowns import Problem, first_known, problem_if
from policy.workloads import IMAGES

DAYS = 90
_ROLES = frozenset(kind for cloud in clouds.descriptors() if cloud.roles for kind in cloud.roles.where)


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Secrets with credentials that a CCM reads, and that do not say when these expire, or not soon enough."""
    if stack.of(*_ROLES):
        stack.not_applicable("CCMs take roles here, whose keys expire within hours")
    for secret in stack.of(SECRET):
        if not secret.is_patch and not str(dig(secret.props, "type") or "").startswith("kubernetes.io/"):
            conditions = [partial(_has_credentials, secret), partial(_is_read, stack, secret)]
            yield secret, partial(problem_if, conditions, partial(_problem, secret))


def _has_credentials(secret: Subject) -> bool:
    return bool(first_known(partial(_of_entry, key, text) for key, text in entries(secret)))


def _of_entry(key: str, text: Callable[[], str]) -> list[str]:
    """In a Secret, a placeholder stands for a credential that this run does not have."""
    return [name for name, value in settings(key, text()) if value and is_name(name)] or credentials(key, text())


def _is_read(stack: Stack, secret: Subject) -> bool:
    return any(ccms_reading(stack, secret))


def _problem(secret: Subject) -> str | None:
    found = dig(secret.props, "metadata", "annotations", EXPIRES)
    days = int(secret.config.get("days") or DAYS)
    if not found:
        return f"holds a credential of the CCM, and no annotation {EXPIRES} says when it expires (YYYY-MM-DD)"
    try:
        expires = date.fromisoformat(str(found))
    except ValueError:
        return f"annotation {EXPIRES} is not a date (YYYY-MM-DD)"
    today = datetime.now(UTC).date()
    if expires < today:
        return f"the CCM's credential expired on {expires}: replace it, and set annotation {EXPIRES}"
    if expires > today + timedelta(days=days):
        return f"the CCM's credential expires on {expires}, which is more than {days} days ahead"
    return None


CREDENTIALS_EXPIRE = StackRule(
    "ccm-credential-set-expiry",
    problems,
    why=(
        "A credential that nobody replaces is valid wherever it has leaked to, and nobody remembers how to replace it "
        "when that is urgent. Its Secret says when it expires, so that a preview, an alert or a person can warn."
    ),
    level=ADVISORY,
    settings={
        "images": IMAGES,
        "days": setting("integer", "How many days ahead a credential may expire.", DAYS, minimum=1),
    },
    title="The CCM's credential expires",
    severity=MEDIUM,
    lines=["11.3.2"],
    judges=(
        "In a stack where a CCM cannot take a role of the cloud, each Secret of the stack that a CCM mounts or reads "
        "variables from, and that holds a credential (a cloud config with a token, a file with a key), has the "
        f"annotation `{EXPIRES}: YYYY-MM-DD`, neither in the past nor more than `days` ahead. The benchmarks of the "
        "Center for Internet Security ask for new access keys every 90 days. Secrets of Kubernetes' own types "
        "(`kubernetes.io/tls` …) are left alone: certificates carry their own date of expiry."
    ),
    unseen=(
        "Whether the cloud agrees with the date, credentials in a Secret that another program makes, and those in "
        "files that the cloud config names (`token-file`)."
    ),
    tags=["credentials"],
    remedy=(
        "Make a credential that expires, put it into the Secret, and write the day into the annotation. Replace both "
        "before that day; a changed Secret restarts the CCM."
    ),
    url="https://kubernetes.io/docs/concepts/security/secrets-good-practices/",
)
