"""A web server that is slow to warm up, for pods: run as text by `python -c`, so it imports nothing of the project.

Like the `web` image it names its pod, at once. But `/warm`, which the load balancer checks, answers 503 for
WARM_SECONDS. After SIGTERM it serves LINGER_SECONDS longer, as programs behind a load balancer must.
"""

import json
import os
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_WARM_AT = time.monotonic() + float(os.environ["WARM_SECONDS"])


class Handler(BaseHTTPRequestHandler):
    """Answers every GET with the pod's name; `/warm` says whether it is warm."""

    def do_GET(self) -> None:
        """Answer a request."""
        cold = self.path == "/warm" and time.monotonic() < _WARM_AT
        body = json.dumps({"node": os.environ["POD_NAME"]}).encode()
        self.send_response(503 if cold else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class Server(ThreadingHTTPServer):
    """Ends with the process, whatever connections are open."""

    daemon_threads = True
    request_queue_size = 128


server = Server((os.environ["POD_IP"], 8080), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Timer(float(os.environ["LINGER_SECONDS"]), server.shutdown).start())
server.serve_forever(poll_interval=0.2)
