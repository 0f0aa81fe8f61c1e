"""Authenticates and authorizes HTTP clients through the API server, as Kubernetes' components do.

A TokenReview identifies the bearer token's user, a SubjectAccessReview checks the path. Results are cached for ten
seconds, as upstream does.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from cloud_controller.kube import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, KubeApi

KEPT = 10.0
"""Seconds for which a result is cached."""
_REMEMBERED = 1024


class Reviews:
    """Reviews tokens and caches the results. Thread-safe."""

    def __init__(
        self, authentication: KubeApi, authorization: KubeApi, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._authentication = authentication
        self._authorization = authorization
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: OrderedDict[tuple[bytes, str], tuple[float, int]] = OrderedDict()

    def status(self, token: str, path: str) -> int:
        """200 if the token's user may get the path, 401 for an invalid token, 403 for a user without permission.

        Raises `ApiError` if a review fails.
        """
        asked = hashlib.sha256(token.encode()).digest(), path
        now = self._clock()
        with self._lock:
            if asked in self._answers and now < self._answers[asked][0] + KEPT:
                return self._answers[asked][1]
        status = self._ask(token, path)
        with self._lock:
            self._answers[asked] = now, status
            self._answers.move_to_end(asked)
            if len(self._answers) > _REMEMBERED:
                self._answers.popitem(last=False)
        return status

    def _ask(self, token: str, path: str) -> int:
        review = self._authentication.create(TOKEN_REVIEWS, _review("authentication", "TokenReview", {"token": token}))
        if not review["status"].get("authenticated"):
            return 401
        user = review["status"]["user"]
        spec = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        answer = self._authorization.create(
            SUBJECT_ACCESS_REVIEWS, _review("authorization", "SubjectAccessReview", spec)
        )
        return 200 if answer["status"].get("allowed") else 403


def _review(group: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "spec": spec}
