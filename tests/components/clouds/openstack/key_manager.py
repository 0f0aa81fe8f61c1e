"""Stands in for Keystone and Barbican, as far as a kubeconfig is read: Barbican is not among the services here.

Like Barbican's own code, it gives a payload of text only to those that ask for text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

from local.http_messages import Answer, Request, json_answer
from local.http_server import Application, config, serving


class KeyManager:
    """`secrets`: names and payloads, the newest first."""

    url: str

    def __init__(self) -> None:
        self.secrets: list[tuple[str, str]] = []

    @contextmanager
    def serving(self) -> Iterator[KeyManager]:
        with serving(config(Application(self.answer), "127.0.0.1")) as self.url:
            yield self

    def token(self) -> dict[str, Any]:
        endpoint = {"interface": "public", "region_id": "R", "url": self.url}
        catalog = [{"type": "key-manager", "endpoints": [endpoint]}]
        return {"token": {"expires_at": "2099-01-01T00:00:00Z", "project": {"id": "p"}, "catalog": catalog}}

    async def answer(self, request: Request) -> Answer:
        """What Keystone says to a POST, and Barbican to a GET."""
        if request.method == "POST":
            return json_answer(201, self.token(), {"X-Subject-Token": "a-token"})
        if request.headers["x-auth-token"] != "a-token":
            return json_answer(401, {})
        if request.path == "/v1/secrets":
            query = {key: values[0] for key, values in parse_qs(request.query).items()}
            assert query["sort"] == "created:desc"
            found = [
                {"name": name, "secret_ref": f"http://behind-a-proxy.invalid/v1/secrets/{index}"}
                for index, (name, _) in enumerate(self.secrets)
                if name == query["name"]
            ]
            return json_answer(200, {"secrets": found[: int(query["limit"])]})
        index = int(request.path.removeprefix("/v1/secrets/").removesuffix("/payload"))
        return (
            Answer(200, self.secrets[index][1].encode()) if request.headers["accept"] == "text/plain" else Answer(406)
        )
