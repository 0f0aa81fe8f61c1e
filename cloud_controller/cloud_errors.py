"""What a call to a cloud may fail with: a small family, each naming what was asked and what to do.

`cloud_controller.cloud` offers them too; they stand alone so that what is pure (the catalogue) needs nothing else of
it.
"""

from __future__ import annotations


class CloudError(Exception):
    """A cloud could not do what it was asked; the message says what was asked and what to do."""


class NotFound(CloudError):
    """The object does not exist in the cloud."""


class Throttled(CloudError):
    """The cloud refuses more calls for now."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds after which a call may be made again."""


class QuotaExceeded(CloudError):
    """The account holds as many objects of this kind as it may."""


class Conflict(CloudError):
    """The object's present state forbids the change; observing again tells what it is."""


class Unavailable(CloudError):
    """The cloud did not answer, or said that it can't now. The change may have been made all the same."""


class Postponed(CloudError):
    """The change, or the rest of it, would be wrong now or has to wait for the cloud; it is in the next plan."""


class AccessDenied(CloudError):
    """The credentials are wrong, or lack the right that the message names."""


class InvalidConfiguration(CloudError):
    """Somebody's input is wrong: a field of the cloud config, an annotation of a Service, a parameter of the API."""

    def __init__(self, field: str, why: str, allowed: str | None = None) -> None:
        super().__init__(f"{field}: {why}" + (f" (allowed: {allowed})" if allowed else ""))
        self.field = field
        self.why = why
        self.allowed = allowed
