"""The token webhook of the site's clusters: identifies the bearer of an EKS token through STS, and checks its access.

A TLS service beside the API. A cluster's API server calls it at `/CLUSTER` with a TokenReview.
"""

from __future__ import annotations

import json
import logging
import re
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import urllib3

from local.aws.tokens import CLUSTER_HEADER, NotAToken, identity_url, principal
from local.control_plane.pki import Authority, write_pair
from local.state_folder import write_private

PORT = 7443
STS_SECONDS = 20.0
"""The API server waits half a minute; an earlier failure here rejects the user."""

IDLE_SECONDS = 600
"""Longer than the API server keeps a connection (90 s): if this side closed it, a request might be on its way."""

MOST_BYTES = 64 * 1024
ADMINISTRATORS = "system:masters"

_log = logging.getLogger(__name__)


class Webhook:
    """`creator_of` returns the creator of a cluster by its name; None if there is none."""

    def __init__(self, directory: Path, address: str, sts: str, creator_of: Callable[[str], str | None]) -> None:
        authority = Authority.load_or_create(_folder(directory), "webhook-ca", "token webhook")
        write_pair(directory, "webhook", authority.issue_server("token webhook", [address]))
        self._url = f"https://{address}:{PORT}"
        self._authority = directory / "webhook-ca.crt"
        self._sts = sts
        self._creator_of = creator_of
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "webhook.crt", directory / "webhook.key")
        self._server = ThreadingHTTPServer((address, PORT), _handler(self.review))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, name="token webhook", daemon=True)

    def start(self) -> None:
        """Start answering."""
        self._thread.start()

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

    def _identity(self, url: str, cluster: str) -> tuple[str, str]:
        """The ARN and id of the request's signer, from STS. Raises NotAToken."""
        headers = {CLUSTER_HEADER: cluster, "Accept": "application/json"}
        with urllib3.PoolManager(retries=False, timeout=STS_SECONDS) as pool:
            try:
                answer = pool.request("GET", url, headers=headers, redirect=False)
            except urllib3.exceptions.HTTPError as error:
                raise NotAToken(f"STS did not answer: {error}") from None
        text = answer.data.decode(errors="replace")
        arn, user_id = re.search("<Arn>([^<]+)</Arn>", text), re.search("<UserId>([^<]+)</UserId>", text)
        if answer.status != 200 or arn is None or user_id is None:
            raise NotAToken(f"STS rejected the token (HTTP {answer.status})")
        return arn[1], user_id[1]


def _handler(review: Callable[[str, str], dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = IDLE_SECONDS

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if length > MOST_BYTES:
                self.send_error(413)
                return
            try:
                body = json.loads(self.rfile.read(length))
                token = str(body["spec"]["token"])
            except (ValueError, KeyError, TypeError):
                self.send_error(400)
                return
            status = review(self.path.strip("/").partition("?")[0], token)
            answer = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing: the log is for errors, and this would only add a path."""

    return Handler


def _folder(directory: Path) -> Path:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory
