"""The base of this project's dynamic providers: how they are pickled, and what is said of their errors.

The engine's plugin unpickles a provider by reference, its module and name: keep both, without attributes, and the
module light. What a provider needs comes from the stack's config (`configure`).
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from pulumi.dynamic import ConfigureRequest, ResourceProvider


class ForPeople(Exception):
    """An error whose message says all: what is wrong, and what to do."""


class DynamicProvider(ResourceProvider):
    """See the module."""

    # The pickled form is this class's name and nothing else: no secret to hide, and diffs stay readable.
    serialize_as_secret_always = False

    _config: Any

    def configure(self, req: ConfigureRequest) -> None:
        self._config = req.config
        # The SDK's server answers every exception with `traceback.format_exc()`, fifteen lines around the one that says
        # what to do, and has no other way. In its process, and in no other, this name leads to ours.
        server = sys.modules["__main__"]
        if hasattr(server, "DynamicResourceProviderServicer"):
            vars(server)["traceback"] = _Messages


class _Messages:
    """What the server needs of the module `traceback`."""

    @staticmethod
    def format_exc() -> str:
        """The message of an error that people can act on; of a bug, where it is."""
        error = sys.exc_info()[1]
        return str(error) if isinstance(error, _for_people()) else traceback.format_exc()


def _for_people() -> tuple[type[Exception], ...]:
    from cloud_controller.cloud import CloudError
    from cloud_controller.kube import ApiError, KubeconfigError

    from .cluster_plan import NotConverged

    return (ForPeople, NotConverged, CloudError, ApiError, KubeconfigError)
