"""The daemon beside an API server that does not answer."""

from __future__ import annotations

import threading

from cloud_controller.daemon.manager import Manager
from cloud_controller.daemon.options import ManagerOptions
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.kube.scripted_server import Answer, Call, serving


def test_a_daemon_that_is_to_end_does_not_wait_for_a_list_that_nobody_answers() -> None:
    asked, ended = threading.Event(), threading.Event()

    def answer(call: Call) -> Answer:
        if call.path == "/api/v1/namespaces/kube-system":
            return Answer({"metadata": {"uid": "u"}})
        asked.set()
        ended.wait(60)
        return Answer(status=500)

    with serving() as server:
        server.answer = answer
        manager = Manager(server.kube, FakeCloud(), ManagerOptions(("node",), leader_elect=False))
        stop = threading.Event()
        running = threading.Thread(target=manager.run, args=(stop,))
        running.start()
        assert asked.wait(60)

        stop.set()
        running.join(5)

        still_running = running.is_alive()
        ended.set()
        running.join(60)
    assert not still_running
