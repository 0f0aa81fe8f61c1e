"""The tree on a terminal during a run and at its end: its columns, and what is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from local.engine.display.frame import Screen, checking, ended, running
from local.engine.display.terminal import width_of
from local.engine.display.text import plain
from local.engine.display.tree import Tree
from local.engine.events import Diagnostic, Event, Prelude, StepDone, StepFailed, StepInfo, StepStarted
from local.engine.stack.resource import ResourceState
from local.engine.steps.planner import Op
from local.plugins.values import Secret
from tests.local.engine.shown_events import STACK, creating, resource, stack, step

WIDE = Screen(100, 40, width_of)
POOL = resource("pool", "cloud:m:Pool", custom=False, parent=STACK)


def tree_of(*events: Event, operation: str = "up", at: float = 0) -> Tree:
    tree = Tree()
    tree.take(Prelude(operation, "dev", {}), at)
    for event in events:
        tree.take(event, at)
    return tree


def made(state: ResourceState, seconds: float = 0.5) -> list[Event]:
    info = step(Op.CREATE, None, state)
    return [StepStarted(info, False), StepDone(info, False, seconds)]


def during(tree: Tree, screen: Screen = WIDE, now: float = 3, **wanted: Any) -> list[str]:
    return [plain(parts) for parts in running(tree, screen, now, began=0, **wanted)]


def after(tree: Tree, screen: Screen = WIDE, **wanted: Any) -> list[str]:
    return [plain(parts) for parts in ended(tree, screen, **wanted)]


def test_children_hang_on_their_parents_with_status_and_elapsed_time() -> None:
    web = creating("web", parent=POOL.urn)
    tree = tree_of(*made(stack()), *made(POOL), *made(resource("db", parent=POOL.urn)), StepStarted(web, False))
    tree.take(StepStarted(creating("last"), False), 1)

    assert during(tree, now=3.9) == [
        "    Type                 Name   Status         Info",
        " +  pulumi:pulumi:Stack  p-dev  creating",
        " +  ├─ cloud:m:Pool      pool   creating",
        " +  │  ├─ cloud:m:Thing  db     created",
        " +  │  └─ cloud:m:Thing  web    creating (3s)",
        " +  └─ cloud:m:Thing     last   creating (2s)",
        "Resources: 2 running, 3 created; 3s",
    ]


def test_a_resources_progress_is_shown_beside_it_until_it_is_done() -> None:
    web = creating("web")
    tree = tree_of(*made(stack()), StepStarted(web, False))
    tree.take(Diagnostic("info", "waiting for 2 of 3 pods", web.urn, ephemeral=True), 1)
    assert during(tree)[2].endswith("web    creating (3s)  waiting for 2 of 3 pods")

    tree.take(StepDone(web, False, 4.0), 4)
    assert "pods" not in "".join(during(tree) + after(tree))


def test_a_problem_is_shown_under_its_resource_and_counted_at_the_end() -> None:
    web = creating("web")
    problem = Diagnostic("error", "quota exceeded\nask for more", web.urn)
    tree = tree_of(*made(stack()), StepStarted(web, False), StepFailed(web), problem)

    assert during(tree)[2:4] == [" +  └─ cloud:m:Thing     web    failed", "        error: quota exceeded"]
    assert after(tree)[2] == " +  └─ cloud:m:Thing     web    failed           1 error"


def test_differing_properties_are_named_by_their_first_key() -> None:
    old = resource("web", inputs={"size": 1, "spec": {"a": 1}, "gone": 1}, parent=STACK)
    new = resource("web", inputs={"size": 2, "spec": {"a": 1, "b": 2}, "more": 1, "token": Secret("x")}, parent=STACK)
    update = step(Op.UPDATE, old, new)

    tree = tree_of(StepStarted(update, True), StepDone(update, True), operation="preview")

    assert after(tree)[2].endswith("web    update  [diff: -gone,+more,~size,~spec,+token]")


def test_a_finished_preview_shows_the_differences_under_each_resource() -> None:
    old, new = resource("web", inputs={"size": 1}), resource("web", inputs={"size": 2})
    update = step(Op.UPDATE, old, new)

    shown = after(tree_of(StepStarted(update, True), StepDone(update, True), operation="preview"))

    assert shown[-1] == "        ~ size: 1 => 2"


def test_the_first_line_of_a_message_is_shown_beside_the_resource_and_the_message_counted_at_the_end() -> None:
    web = creating("web")
    message = Diagnostic("info", "plan: 1 to create\n  +  route/x: make it", web.urn)
    tree = tree_of(*made(stack()), StepStarted(web, False), message)

    assert during(tree)[2].endswith("creating (3s)  plan: 1 to create")
    tree.take(StepDone(web, False, 1.0), 4)
    assert after(tree)[2].endswith("created (1.00s)  1 message")


def test_unchanged_resources_are_omitted_unless_requested_or_parents_of_changed_ones() -> None:
    same = [step(Op.SAME, state, state) for state in (POOL, resource("quiet", parent=STACK))]
    events = [StepDone(info, False) for info in same]
    tree = tree_of(*events, *made(resource("new", parent=POOL.urn)))

    assert [text.split()[-3:] for text in after(tree)[1:]] == [
        ["pulumi:pulumi:Stack", "p-dev"],
        ["└─", "cloud:m:Pool", "pool"],
        ["new", "created", "(0.50s)"],
    ]
    assert any("quiet" in text for text in after(tree, sames=True))


def test_a_replacement_stays_one_row_after_the_old_resource_is_deleted() -> None:
    old, new = resource("web", id="1"), resource("web", id="2")
    replacing, deleting = step(Op.REPLACE, old, new), step(Op.DELETE_REPLACED, old, None)
    tree = tree_of(StepStarted(replacing, False), StepDone(replacing, False, 1), StepStarted(deleting, False))
    assert "replacing (3s)" in during(tree)[1] or "replaced" in during(tree)[1]

    tree.take(StepDone(deleting, False, 2), 2)
    assert after(tree)[1:] == [" +- cloud:m:Thing  web   replaced (1.00s)"]


def test_a_parent_without_events_is_shown_by_its_urn() -> None:
    deleted = step(Op.DELETE, resource("web", parent=POOL.urn), None)
    shown = after(tree_of(StepStarted(deleted, False), StepDone(deleted, False, 0.1), operation="destroy"))
    assert [text.split()[:2] for text in shown[1:]] == [["cloud:m:Pool", "pool"], ["-", "└─"]]


def thousand() -> Tree:
    tree = tree_of(*made(stack()))
    for number in range(1000):
        tree.take(StepStarted(creating(f"node-{number}"), False), 0)
        if number not in (5, 500):
            tree.take(StepDone(creating(f"node-{number}"), False, 0.1), 0)
    failed = creating("node-500")
    tree.take(StepFailed(failed), 1)
    return tree


def test_a_tree_that_is_too_tall_shows_failures_running_steps_and_the_latest_changes() -> None:
    shown = during(thousand(), Screen(80, 10, width_of))

    assert len(shown) == 9 and shown[-2:] == [
        "    … and 995 more",
        "Resources: 1 running, 999 created; 3s",
    ]
    assert [text.split()[3] for text in shown[2:-2]] == ["node-5", "node-500", "node-997", "node-998", "node-999"]


def test_the_final_tree_is_complete_however_tall() -> None:
    assert len(after(thousand(), Screen(80, 10, width_of))) == 1002


def test_a_terminal_of_two_lines_shows_the_counts() -> None:
    assert during(thousand(), Screen(80, 2, width_of)) == ["Resources: 1 running, 999 created; 3s"]


def test_long_names_are_cut_before_the_status() -> None:
    web = creating("a-very-long-name-" * 5)
    shown = during(tree_of(*made(stack()), StepStarted(web, False)), Screen(60, 20, width_of))
    assert all(len(text) <= 60 for text in shown)
    assert "…" in shown[2] and "creating (3s)" in shown[2] and "a-very-long" in shown[2]


def test_a_deletion_that_only_forgets_shows_its_reason() -> None:
    spared = replace(step(Op.DELETE, resource("web", parent=STACK), None), note="retained")
    assert after(tree_of(StepDone(spared, False, 0.1)))[2].endswith("web    deleted (0.10s)  [retained]")


def test_a_long_type_is_cut_at_its_beginning() -> None:
    role = resource("role", "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", parent=STACK)
    shown = during(tree_of(*made(stack()), *made(role)), Screen(50, 20, width_of))
    assert shown[2].startswith(" +  └─ …") and "v1:ClusterRole  role" in shown[2]


def test_wide_characters_in_a_name_are_counted_by_their_columns() -> None:
    shown = during(tree_of(*made(stack()), *made(resource("数据库服务器", parent=STACK))), Screen(80, 20, width_of))
    assert [width_of(text[: text.index("creat")]) for text in shown[1:3]] == [39, 39]


def test_names_and_messages_cannot_control_the_terminal() -> None:
    web = creating("we\x1b[2Jb\nsecond")
    said = Diagnostic("info", "\x1b]0;title\x07 \u202ereversed", web.urn, ephemeral=True)
    shown = running(tree_of(*made(stack()), StepStarted(web, False), said), WIDE, 1, began=0)
    reported = "".join(plain(parts) for parts in shown)
    assert reported.isprintable() and r"we\x1b[2Jb\nsecond" in reported


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=30), st.integers(0, 5), st.booleans()), max_size=40),
    st.integers(1, 120),
    st.integers(1, 30),
)
def test_no_frame_is_larger_than_its_screen(rows: list[tuple[str, int, bool]], columns: int, lines: int) -> None:
    tree = tree_of(*made(stack()))
    parents = [STACK]
    early = Tree()
    early.take(Diagnostic("error", "before anything else"), 0)
    for name, parent, done in rows:
        info: StepInfo = creating(name, parent=parents[parent % len(parents)])
        tree.take(StepStarted(info, False), 0)
        tree.take(StepDone(info, False) if done else Diagnostic("warning", name, info.urn), 0)
        parents.append(info.urn)

    for known in (tree, early):
        frame = running(known, Screen(columns, lines, width_of), 1, began=0)
        assert len(frame) <= max(lines - 1, 1) and all(width_of(plain(parts)) <= columns for parts in frame)


def test_the_preview_before_an_update_is_one_line() -> None:
    tree = tree_of(*made(stack()), *made(POOL), operation="preview")
    [shown] = checking(tree, WIDE, 2, began=0)
    assert plain(shown).endswith("Previewing update (dev): 2 resources, 2s")
