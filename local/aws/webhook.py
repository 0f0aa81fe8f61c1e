"""The token webhook of the site's clusters: identifies the bearer of an EKS token through STS, and checks its access.

A TLS service beside the API. A cluster's API server calls it at `/CLUSTER` with a TokenReview.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from local.aws.folder import WEBHOOK_PORT
from local.aws.tokens import CLUSTER_HEADER, NotAToken, identity_url, principal
from local.control_plane.pki import Authority, write_pair
from local.http_client import HttpError, request
from local.http_messages import Answer, Request, json_answer
from local.http_server import Application, config, serving
from local.state_folder import write_private

STS_SECONDS = 20.0
"""The API server waits half a minute; an earlier failure here rejects the user."""

ADMINISTRATORS = "system:masters"

_log = logging.getLogger(__name__)


class Webhook:
    """`creator_of` returns the creator of a cluster by its name; None if there is none."""

    def __init__(self, directory: Path, address: str, sts: str, creator_of: Callable[[str], str | None]) -> None:
        authority = Authority.load_or_create(_folder(directory), "webhook-ca", "token webhook")
        write_pair(directory, "webhook", authority.issue_server("token webhook", [address]))
        self._url = f"https://{address}:{WEBHOOK_PORT}"
        self._authority = directory / "webhook-ca.crt"
        self._sts = sts
        self._creator_of = creator_of
        self._config = config(
            Application(self._answer),
            address,
            WEBHOOK_PORT,
            ssl_certfile=directory / "webhook.crt",
            ssl_keyfile=directory / "webhook.key",
        )

    def serving(self) -> AbstractContextManager[str]:
        """Answers while the block runs."""
        return serving(self._config)

    def write_client_config(self, path: Path, cluster: str) -> None:
        """Write a cluster's API server's configuration of this webhook: a kubeconfig."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "webhook",
                    "cluster": {"server": f"{self._url}/{cluster}", "certificate-authority": str(self._authority)},
                }
            ],
            "contexts": [{"name": "webhook", "context": {"cluster": "webhook", "user": "api-server"}}],
            "users": [{"name": "api-server", "user": {}}],
            "current-context": "webhook",
        }
        write_private(path, json.dumps(config))

    def review(self, cluster: str, token: str) -> dict[str, Any]:
        """The status of the TokenReview: only the cluster's creator is authenticated."""
        creator = self._creator_of(cluster)
        try:
            arn, user_id = self._identity(identity_url(token, self._sts), cluster)
        except NotAToken as error:
            return {"authenticated": False, "error": str(error)}
        if creator is None or principal(arn) != principal(creator):
            _log.info("cluster %s denies access to %s", cluster, arn)
            return {"authenticated": False, "error": f"{arn} has no access to cluster {cluster}"}
        return {
            "authenticated": True,
            "user": {"username": "kubernetes-admin", "uid": user_id, "groups": [ADMINISTRATORS]},
        }

    async def _answer(self, request: Request) -> Answer:
        if request.method != "POST":
            return Answer(405)
        try:
            token = str(json.loads(request.body)["spec"]["token"])
        except (ValueError, KeyError, TypeError):
            return Answer(400)
        status = await run_in_threadpool(self.review, request.path.strip("/"), token)
        return json_answer(200, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status})

    def _identity(self, url: str, cluster: str) -> tuple[str, str]:
        """The ARN and id of the request's signer, from STS. Raises NotAToken."""
        headers = {CLUSTER_HEADER: cluster, "Accept": "application/json"}
        try:
            answer = request("GET", url, headers=headers, seconds=STS_SECONDS)
        except HttpError as error:
            raise NotAToken(f"STS did not answer: {error}") from None
        text = answer.data.decode(errors="replace")
        arn, user_id = re.search("<Arn>([^<]+)</Arn>", text), re.search("<UserId>([^<]+)</UserId>", text)
        if answer.status != 200 or arn is None or user_id is None:
            raise NotAToken(f"STS rejected the token (HTTP {answer.status})")
        return arn[1], user_id[1]


def _folder(directory: Path) -> Path:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory
