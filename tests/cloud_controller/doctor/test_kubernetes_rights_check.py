"""kubernetes-rights: whether the CCM's ServiceAccount may do what its controllers call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cloud_controller.doctor.checks.kubernetes_rights import CHECK
from cloud_controller.kube import DAEMON_SETS, SUBJECT_ACCESS_REVIEWS, ForbiddenError, Object
from tests.cloud_controller.doctor.manager import ARGUMENTS, NAME, NAMESPACE, cluster, daemon_set, found, passes, run
from tests.fake_kubernetes import FakeKubernetes

ON_ALL_ADDRESSES = (*ARGUMENTS, "--bind-address=$(POD_IP)")


def reviewed(allowed: Callable[[dict[str, Any]], bool], *arguments: str) -> tuple[FakeKubernetes, list[Object]]:
    """A cluster that allows this, and the reviews that it gets."""
    api, specs = cluster(), list[Object]()
    api.put(DAEMON_SETS, daemon_set(*(arguments or ON_ALL_ADDRESSES)))

    def review(asked: Object) -> Object:
        specs.append(asked["spec"])
        return asked | {"status": {"allowed": allowed(asked["spec"]["resourceAttributes"])}}

    api.reviews[SUBJECT_ACCESS_REVIEWS] = review
    return api, specs


def test_an_account_with_all_rights_is_no_finding() -> None:
    api, _ = reviewed(lambda _: True)

    assert passes(CHECK, api)


def test_the_rights_of_the_pods_account_are_asked_for() -> None:
    api, specs = reviewed(lambda _: True)

    run(CHECK, api)

    assert {spec["user"] for spec in specs} == {f"system:serviceaccount:{NAMESPACE}:{NAME}"}
    assert specs[0]["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{NAMESPACE}",
        "system:authenticated",
    ]


def test_missing_verbs_are_one_finding() -> None:
    api, _ = reviewed(lambda asked: asked["resource"] != "services" or asked["verb"] == "list")

    finding = found(CHECK, api)

    assert finding.subject == f"serviceaccount/{NAMESPACE}/{NAME}"
    assert finding.evidence == ("get, watch, patch services", "patch services/status")


def test_rights_to_one_object_are_asked_for_by_its_name() -> None:
    api, _ = reviewed(lambda asked: asked.get("name") != NAME)

    assert found(CHECK, api).evidence == (f"get, update leases.coordination.k8s.io {NAME} in namespace {NAMESPACE}",)


def test_a_daemon_that_listens_on_loopback_needs_no_reviews() -> None:
    api, _ = reviewed(lambda asked: "reviews" not in asked["resource"], *ARGUMENTS, "--bind-address=127.0.0.1")

    assert passes(CHECK, api)


def test_a_protected_daemon_needs_reviews() -> None:
    api, _ = reviewed(lambda asked: "reviews" not in asked["resource"])

    assert len(found(CHECK, api).evidence) == 2


def test_rights_of_a_controller_that_does_not_run_are_not_needed() -> None:
    api, _ = reviewed(lambda asked: asked["resource"] != "services")

    assert passes(CHECK, api, controllers=["node"])


def test_without_the_right_to_ask_rights_are_not_checked() -> None:
    api, _ = reviewed(lambda _: True)
    api.fail(ForbiddenError(403, "Forbidden", "cannot create subjectaccessreviews"), "create")

    assert run(CHECK, api).not_done == "cannot create subjectaccessreviews"


def test_rights_of_another_ccm_are_not_checked() -> None:
    api, _ = reviewed(lambda _: True, "--cloud-provider=aws")

    assert "another project's CCM" in (run(CHECK, api).not_done or "")
