"""What is planned is a function of values: once its facts are read, nothing more is asked of the cloud."""

from __future__ import annotations

from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.diff import diff
from tests.contract.harness import Harness, web
from tests.contract.process import Process

PART = "load_balancers"


def test_a_plan_makes_no_call(harness: Harness) -> None:
    node = harness.node("one")
    process = Process(harness)
    lb = process.served(web(harness, 8080), [node])
    builder = process.load_balancers.builder
    changed = web(harness, 8080, 9443, annotations=harness.changed_annotations)
    facts = process.load_balancers.facts([changed], {}, ())
    before = (harness.wire.reads, [*harness.wire.writes])

    backend = builder.backend(node)
    assert backend is not None
    model = builder.build(changed, Backends((backend,)), facts).model
    catalogue = builder.catalogue.of_class(harness.load_balancer_class)
    plan = diff(model, [lb], catalogue, target="service/default/web", client_token=process.token())

    assert plan.changes
    assert (harness.wire.reads, harness.wire.writes) == before
