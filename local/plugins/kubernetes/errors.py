"""API errors as messages for people: with the object and the field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from cloud_controller.kube import ApiError, NotFoundError, UnreachableError
from local.plugins.provider import ProviderError

_REQUEST = re.compile(r"[A-Z]+ /\S*: (.*) \(HTTP \d+\)", re.DOTALL)
"""The client's wrapping of the server's message: the request, which is irrelevant to the program's user."""


class UnreachableClusterError(ProviderError):
    """The API server does not answer; with the option deleteUnreachable its objects count as gone."""


def explain(subject: str, error: ApiError) -> str:
    """An API error as one line about the object."""
    causes = error.details.get("causes") or []
    problems = [f"{cause.get('field')}: {cause.get('message')}" for cause in causes if cause.get("field")]
    rejected = _REQUEST.fullmatch(error.message)
    return f"{subject}: {'; '.join(problems) or (rejected[1] if rejected else error.message)}"


@contextmanager
def as_provider_errors(subject: str, *, gone_passes: bool = False) -> Iterator[None]:
    """Turn API errors into ProviderErrors about `subject`; NotFoundError may pass."""
    try:
        yield
    except UnreachableError as error:
        raise UnreachableClusterError(
            f"the cluster's API server is unreachable: {error.message}; if the cluster is gone for good, set "
            "PULUMI_K8S_DELETE_UNREACHABLE=true so that refresh and delete forget its objects"
        ) from None
    except ApiError as error:
        if gone_passes and isinstance(error, NotFoundError):
            raise
        raise ProviderError(explain(subject, error)) from None
