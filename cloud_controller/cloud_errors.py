"""The exceptions of calls to a cloud. Each message names the operation and what to do.

    CloudError
    ├── AccessDenied           the credentials are invalid or lack a permission
    ├── Conflict               the object's present state forbids the change
    │   └── Overtaken          the object has changed since it was read
    ├── ForeignCluster         cloud config and Kubernetes cluster do not match
    ├── InvalidConfiguration   the user's input is invalid
    │   └── LeftOut            the change was made without what is invalid
    ├── NotFound               the object does not exist
    ├── Postponed              the change has to wait; the next plan includes it
    ├── QuotaExceeded          the account's quota is used up
    ├── Throttled              the cloud rejects calls for now
    └── Unavailable            the cloud did not answer; THE CHANGE MAY HAVE SUCCEEDED

`cloud_controller.cloud` re-exports them. They are in a module of their own so that pure modules can use them without
importing the rest.
"""

from __future__ import annotations

from collections.abc import Mapping


class CloudError(Exception):
    """Base class: a call to a cloud failed."""


class NotFound(CloudError):
    """The object does not exist in the cloud."""


class Throttled(CloudError):
    """The cloud rejects calls for now; retry after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds until the next call may be made."""


class QuotaExceeded(CloudError):
    """The account's quota for this kind of object is used up."""


class Conflict(CloudError):
    """The object's present state forbids the change; observe again to learn its state."""


class Overtaken(Conflict):
    """The object has changed since it was read, so nothing was written. `retries.change` reads it again."""


class Unavailable(CloudError):
    """The cloud did not answer, or is temporarily out of order. THE CHANGE MAY HAVE SUCCEEDED."""


class Postponed(CloudError):
    """The change, or the rest of it, has to wait; the next plan includes it.

    `members`: why each of these was refused meanwhile, as in `LeftOut`; the others wait.
    """

    def __init__(self, message: str, members: Mapping[tuple[str, int], str] | None = None) -> None:
        super().__init__(message)
        self.members = members or {}


class AccessDenied(CloudError):
    """The credentials are invalid, or lack the permission that the message names."""


class ForeignCluster(CloudError):
    """The cloud config and the Kubernetes cluster do not belong together. NOTHING MAY BE WRITTEN TO EITHER."""


class InvalidConfiguration(CloudError):
    """The user's input is invalid: a field of the cloud config, an annotation, an option.

    `field`: its name. `why`: what is wrong. `allowed`: the allowed values, or what to do instead.
    """

    def __init__(self, field: str, why: str, allowed: str | None = None) -> None:
        super().__init__(f"{field}: {why}" + (f" (allowed: {allowed})" if allowed else ""))
        self.field = field
        self.why = why
        self.allowed = allowed


class LeftOut(InvalidConfiguration):
    """A part of the change is invalid. It was left out and the rest was made, so nothing else has to wait for it.

    `members`: why each member (address and port) was left out, if members were.
    """

    def __init__(
        self, field: str, why: str, allowed: str | None = None, members: Mapping[tuple[str, int], str] | None = None
    ) -> None:
        super().__init__(field, why, allowed)
        self.members = members or {}
