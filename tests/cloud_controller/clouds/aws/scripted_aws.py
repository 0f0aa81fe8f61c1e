"""An endpoint of AWS that answers as a test says, for what moto never does: throttle, fail, break off."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config, ServiceOverride

REGION = "eu-central-1"
SERVICES = ("ec2", "elb", "elbv2", "sts")


@dataclass(frozen=True)
class Answer:
    """One answer; status 0 breaks the connection off."""

    status: int
    body: str = ""


@dataclass
class ScriptedAws:
    """Gives the answers in their order, the last one again and again."""

    endpoint: str
    answers: list[Answer] = field(default_factory=list)
    requests: list[dict[str, str]] = field(default_factory=list)
    """The parameters of each request."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """The headers of each request, by their names in lower case."""
    metadata: dict[str, str] = field(default_factory=dict)
    """What it tells as a machine's metadata service, by path."""
    metadata_asked: list[str] = field(default_factory=list)
    """The paths that were asked for."""
    sleeps: list[float] = field(default_factory=list)
    """The pauses that were made between attempts."""

    def api(self, **changes: Any) -> Api:
        """A client that never really sleeps."""
        overrides = tuple(ServiceOverride(service, self.endpoint, REGION, REGION) for service in SERVICES)
        config = Config(**{"cluster_id": "c", "region": REGION, "overrides": overrides, **changes})
        return Api(config, sleep=self.sleeps.append)


def ec2_answer(content: str = "") -> Answer:
    """What EC2 answers where all is well."""
    return Answer(200, f"<Response><requestId>r</requestId>{content}</Response>")


def ec2_error(code: str, status: int = 400, message: str = "no") -> Answer:
    """An error in EC2's form."""
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return Answer(status, f"<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>")


def elb_error(code: str, status: int = 400, message: str = "no") -> Answer:
    """An error in the form of load balancing, both versions."""
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
    return Answer(status, f"<ErrorResponse>{error}<RequestId>r</RequestId></ErrorResponse>")


@contextmanager
def scripted(answers: Sequence[Answer] = ()) -> Iterator[ScriptedAws]:
    """Run such an endpoint on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            query = parse_qs(self.rfile.read(length).decode())
            with lock:
                aws.requests.append({key: values[0] for key, values in query.items()})
                aws.headers.append({key.lower(): value for key, value in self.headers.items()})
                answer = aws.answers.pop(0) if len(aws.answers) > 1 else aws.answers[0]
            if answer.status == 0:
                self.close_connection = True
                self.connection.close()
                return
            body = answer.body.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(BrokenPipeError):  # A client that no longer waits has hung up.
                self.wfile.write(body)

        def do_PUT(self) -> None:
            self._tell("a-token")

        def do_GET(self) -> None:
            aws.metadata_asked.append(self.path)
            self._tell(aws.metadata.get(self.path))

        def _tell(self, text: str | None) -> None:
            body = (text or "").encode()
            self.send_response(404 if text is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Silent."""

    lock = threading.Lock()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    # By default it looks only twice a second whether to end.
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="scripted-aws", daemon=True)
    thread.start()
    aws = ScriptedAws(f"http://127.0.0.1:{server.server_address[1]}", [*answers])
    try:
        yield aws
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
