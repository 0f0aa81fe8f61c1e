"""moto, a simulator of AWS that others wrote, as a server in the tests' own process."""

from __future__ import annotations

import copy
import functools
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from moto.acm.models import CertBundle, TagHolder
from moto.acm.utils import make_arn_for_certificate
from moto.core import responses
from moto.core.utils import method_names_from_class
from moto.moto_server import threaded_moto_server
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.server import ThreadedMotoServer

from tests.integration import refuse_in_fast_test


@contextmanager
def moto_server() -> Iterator[str]:
    """Its URL, while it serves."""
    refuse_in_fast_test("moto")
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    # A line for each request, which pytest keeps, takes a sixth of the time.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with pytest.MonkeyPatch.context() as while_it_serves:
        while_it_serves.setattr(threaded_moto_server, "DomainDispatcherApplication", _OneAtATime)
        # moto looks through a class at every request.
        of_a_class = functools.cache(method_names_from_class)
        while_it_serves.setattr(responses, "method_names_from_class", of_a_class)
        while_it_serves.setattr(CertBundle, "generate_cert", _issue)
        # Thousands of images, read again for each new account.
        while_it_serves.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
        server.start()
        try:
            host, port = server.get_host_and_port()
            yield f"http://{host}:{port}"
        finally:
            server.stop()


_generate = CertBundle.generate_cert


@functools.cache
def _generated(domain: str, account: str, region: str) -> CertBundle:
    """To make a key and to check it takes as long as twenty calls."""
    return _generate(domain, account, region)


def _issue(domain_name: str, account_id: str, region: str, **more: Any) -> CertBundle:
    """A new certificate whose key an earlier one of the domain has too, where it differs in nothing else."""
    if any(more.values()):
        return _generate(domain_name, account_id, region, **more)
    issued = copy.copy(_generated(domain_name, account_id, region))
    issued.arn = make_arn_for_certificate(account_id, region)
    issued.tags, issued.in_use_by, issued.cert_options = TagHolder(), [], {**issued.cert_options}
    return issued


class _OneAtATime(DomainDispatcherApplication):
    """Answers one request after the other: moto's threads change what others of them iterate over, which is a 500."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._answering = threading.Lock()
        # moto looks into each of its folders at every request.
        self.get_backend_for_host = functools.cache(super().get_backend_for_host)  # type: ignore[method-assign]

    def __call__(self, *arguments: Any) -> Any:
        with self._answering:
            return super().__call__(*arguments)
