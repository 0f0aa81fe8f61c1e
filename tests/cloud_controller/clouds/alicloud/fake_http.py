"""Alibaba Cloud's API as a script in the process: what was sent, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

from cloud_controller.cloud import CloudError, Fence
from cloud_controller.clouds.alicloud.client import Client, Key


@dataclass(frozen=True)
class AccessKey:
    id: str = "LTAI-test"
    secret: str = "a-secret-of-a-test"
    session_token: str | None = None


@dataclass
class OneKey:
    """Credentials that never change."""

    given: Key | None = field(default_factory=AccessKey)

    def key(self) -> Key | None:
        return self.given

    def refused(self, key: Key) -> bool:  # noqa: ARG002
        return False


@dataclass(frozen=True)
class Sent:
    url: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def action(self) -> str:
        return self.headers["x-acs-action"]

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.url.partition("?")[2], keep_blank_values=True))

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


class FakeHttp:
    """Answers with `answers` in turn: a dict, `(status, dict)`, bytes, or an error to raise."""

    def __init__(self, *answers: Any) -> None:
        self.answers = [*answers]
        self.sent: list[Sent] = []

    def send(
        self,
        method: str,
        endpoint: str,
        target: str,
        *,
        what: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        fence: Fence,
    ) -> Any:
        assert method in ("GET", "POST") and what
        fence()
        self.sent.append(Sent(endpoint + target, headers, body or b""))
        answer = self.answers.pop(0)
        if isinstance(answer, CloudError):
            raise answer
        status, content = answer if isinstance(answer, tuple) else (200, answer)
        more = content.pop("headers", {}) if isinstance(content, dict) else {}
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        return SimpleNamespace(status=status, data=data, headers=more)


def refusal(
    code: str, message: str = "no", status: int = 400, headers: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    return status, {"Code": code, "Message": message, "RequestId": "R-1", "headers": headers or {}}


def client(*answers: Any, credentials: Any = None) -> tuple[Client, FakeHttp]:
    made = Client(
        "cn-hangzhou", lambda product: f"https://{product}.example", credentials or OneKey(), sleep=lambda _: None
    )
    http = FakeHttp(*answers)
    made._http = http  # type: ignore[assignment]
    return made, http
