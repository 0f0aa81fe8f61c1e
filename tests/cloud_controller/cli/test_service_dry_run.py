"""How each Service is written in a dry run, and which answers are refusals. Real answers need a real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from cloud_controller.cli import service_dry_run
from cloud_controller.cli.service_dry_run import Answer, manager_of
from cloud_controller.cli.service_files import Manifests, parse
from cloud_controller.cli.service_merge import LAST_APPLIED
from cloud_controller.kube import ApiError, ForbiddenError, Kube, NotFoundError, Object, ObjectList, PatchType
from cloud_controller.kube_errors import from_status

WEB = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, ports: [{port: 80}]}}"
NAMESPACE = "{apiVersion: v1, kind: Namespace, metadata: {name: default}}"


class Server:
    """Answers dry runs with what is sent, or with an error, and keeps how it was asked."""

    def __init__(self, *stored: Object, error: ApiError | None = None, warning: str = "") -> None:
        self.stored = stored
        self.warning = warning
        self.error = error
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def hearing(self, hear: Callable[[str], None]) -> Server:
        if self.warning:
            hear(self.warning)
        return self

    def list(self, _: object) -> ObjectList:
        return ObjectList([*self.stored], "1")

    def create(self, _: object, obj: Object, **how: Any) -> Object:
        return self._answer("create", obj, how)

    def replace(self, _: object, obj: Object, **how: Any) -> Object:
        return self._answer("replace", obj, how)

    def patch(self, _: object, name: str, obj: Object, namespace: str, **how: Any) -> Object:
        assert (name, namespace) == ("web", "default")
        return self._answer("patch", obj, how)

    def _answer(self, verb: str, obj: Object, how: dict[str, Any]) -> Object:
        assert how.pop("dry_run") is True
        self.asked.append((verb, how))
        if self.error:
            raise self.error
        return obj


def asked(server: Server, *texts: str, force: bool = False) -> list[Answer]:
    manifests: Manifests = parse([("a.yaml", "\n---\n".join(texts or (WEB,)))], "default")
    return service_dry_run.ask(cast("Kube", server), manifests, force_conflicts=force)


def stored(annotations: dict[str, str] | None = None, *managers: tuple[str, str, str]) -> Object:
    fields = [{"operation": what, "manager": who, "time": when} for what, who, when in managers]
    metadata = {"name": "web", "namespace": "default", "resourceVersion": "7", "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata | {"managedFields": fields}, "spec": {}}


def error(status: int, message: str, **more: Any) -> ApiError:
    return from_status({"message": message, **more}, "POST /api/v1/namespaces/default/services", status)


def test_a_service_that_does_not_exist_is_created() -> None:
    server = Server()

    [answer] = asked(server)

    assert answer.service is not None
    assert server.asked == [("create", {"field_manager": "kubectl", "strict": True})]


def test_a_service_that_kubectl_applied_is_merged_and_replaced() -> None:
    server = Server(stored({LAST_APPLIED: "{}"}))

    [answer] = asked(server)

    assert answer.service is not None and "resourceVersion" not in answer.service["metadata"]
    assert server.asked == [("replace", {"strict": True})]


@pytest.mark.parametrize("force", [False, True])
def test_another_service_is_applied_as_its_last_manager(force: bool) -> None:
    server = Server(stored(None, ("Apply", "flux", "2026-01-02"), ("Apply", "old", "2026-01-01"), ("Update", "x", "9")))

    asked(server, force=force)

    assert server.asked == [("patch", {"type": PatchType.APPLY, "field_manager": "flux", "force": force})]


def test_the_manager_of_a_service_that_nobody_applied_is_kubectl() -> None:
    assert manager_of(stored(None, ("Update", "helm", "2026-01-01"))) == "kubectl"


def test_a_status_that_somebody_applied_says_nothing_of_the_service() -> None:
    live = stored(None, ("Apply", "argocd", "2026-01-01"))
    live["metadata"]["managedFields"].append(
        {"operation": "Apply", "manager": "x", "time": "9", "subresource": "status"}
    )

    assert manager_of(live) == "argocd"


def test_a_refusal_has_the_servers_words_and_the_field_that_it_names() -> None:
    causes = {"causes": [{"message": "?"}, {"field": "spec.ports[0].port"}]}

    [answer] = asked(Server(error=error(422, 'Service "web" is invalid: spec.ports[0].port: Invalid', details=causes)))

    assert answer.refusal is not None
    assert answer.refusal.why == 'Service "web" is invalid: spec.ports[0].port: Invalid'
    assert answer.refusal.field == "spec.ports[0].port"


@pytest.mark.parametrize(
    "failure",
    [
        error(403, 'services is forbidden: User "ci" cannot create resource "services" in API group ""'),
        error(401, "Unauthorized"),
        error(429, "too many requests"),
        error(500, 'failed calling webhook "a"'),
        error(503, "shutting down"),
    ],
)
def test_a_server_that_cannot_be_asked_is_a_failure(failure: ApiError) -> None:
    with pytest.raises(type(failure)):
        asked(Server(error=failure))


def test_who_is_denied_by_admission_is_refused() -> None:
    [answer] = asked(Server(error=error(403, 'admission webhook "a" denied the request: no')))

    assert answer.refusal is not None
    assert ForbiddenError is type(error(403, "x"))


def test_a_service_in_a_namespace_of_the_manifests_is_assumed_until_that_exists() -> None:
    gone = error(404, 'namespaces "default" not found')
    assert isinstance(gone, NotFoundError)

    [assumed] = asked(Server(error=gone), NAMESPACE, WEB)
    [refused] = asked(Server(error=gone), WEB)
    [wrong] = asked(Server(error=gone), NAMESPACE, WEB.replace("80", "eighty"))

    assert assumed.assumed and assumed.service is not None
    assert assumed.service["spec"]["ports"][0]["nodePort"] == 30080
    assert refused.refusal is not None and 'namespaces "default" not found' in refused.refusal.why
    assert wrong.refusal is not None and wrong.refusal.field == "spec.ports[0].port"


def test_what_the_server_warns_of_is_kept() -> None:
    [answer] = asked(Server(warning="unlikely"))

    assert answer.warnings == ("unlikely",)


def test_manifests_without_services_ask_nothing() -> None:
    server = Server(error=error(500, "down"))
    server.list = None  # type: ignore[assignment,method-assign]

    assert asked(server, NAMESPACE) == []
