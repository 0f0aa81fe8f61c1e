"""Recognises what the program calls by another name than the state does, and renames it there."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import replace

from local.engine.events import place_of
from local.engine.program.goal import Goal
from local.engine.stack.references import following
from local.engine.stack.resource import ResourceState
from local.engine.steps import pending
from local.engine.steps.aliases import former_urns
from local.engine.steps.replacement import Replacement
from local.engine.steps.run import Run, StackError


class Renaming:
    """The names of one run. Safe from several threads."""

    def __init__(
        self,
        run: Run,
        olds: MutableMapping[str, ResourceState],
        interrupted: MutableMapping[str, ResourceState],
        replacement: Replacement,
    ) -> None:
        """What the state had by URN, what was being created, and what is deleted before its turn: these follow."""
        self._run = run
        self._olds = olds
        self._interrupted = interrupted
        self._replacement = replacement
        self.claimed: dict[str, str] = {}
        """The URNs that the program has registered, and where."""
        self._taken: dict[str, str] = {}
        """By former URN, that of the resource which had it."""
        self._former: dict[str, tuple[str, ...]] = {}
        """By present URN, those under which its children may stand in the state."""

    def claim(self, urn: str) -> None:
        """Note that the program registers this URN; may have to wait. Raises StackError if it does so twice."""
        with self._run.lock:
            if urn in self.claimed:
                place = place_of(self.claimed[urn])
                other = f"; the other one is at {place}" if place else ""
                raise StackError(f"two resources have this URN: give one another name or parent{other}", urn)
            if urn in self._taken:
                raise StackError(f"{urn} is an alias of {self._taken[urn]}, which was taken for what that was", urn)
            self.claimed[urn] = self._run.positions.get(urn, "")
            self._replacement.spare(urn)

    def recognise(self, urn: str, goal: Goal) -> None:
        """Rename what stands in the state under an alias of the resource. Raises StackError if another has that URN.

        The journal has it before anything else happens to the resource: whatever follows, it has one name only.
        """
        old = self._former_urn(urn, goal)
        if old is None:
            return
        with self._run.lock:
            interrupted = self._interrupted.pop(old, None)
        if interrupted is not None:
            # Under the name that it was begun with: to repeat it is safe only with the same request.
            hooks = goal.template.resource_hooks if goal.template is not None else {}
            made = pending.resume(self._run, replace(interrupted, resource_hooks=hooks))
            with self._run.lock:
                if made is not None:
                    self._olds[old] = made
        with self._run.lock:
            if old in self._olds:
                self._rename(old, replace(self._olds.pop(old), urn=urn, type=goal.type))

    def _former_urn(self, urn: str, goal: Goal) -> str | None:
        run = self._run
        with run.lock:
            if not goal.aliases and goal.parent not in self._former:
                return None
            former = former_urns(goal, urn, run.stack, run.project, self._former)
            # Of a resource that has its name already, children may still have their old ones: a run was killed between.
            self._former[urn] = tuple(former)
            if urn in self._olds or urn in self._interrupted:
                return None
            old = next((u for u in former if self._is_known(u)), None)
            if old is None:
                return None
            self._replacement.spare(old)
            if old in self.claimed or old in self._taken:
                other = self._taken.get(old, old)
                raise StackError(f"its alias {old} is the URN of {other}: only one of them can be what that was", urn)
            self._taken[old] = urn
            self._former[urn] = (old,)
            return old

    def _is_known(self, urn: str) -> bool:
        return urn in self._olds or urn in self._interrupted or urn in self._taken

    def _rename(self, old: str, renamed: ResourceState) -> None:
        store = self._run.store
        deleted = self._replacement.deleted
        if old in deleted:
            deleted.remove(old)
            deleted.add(renamed.urn)
        elif self._run.dry_run:
            store.snapshot.rename(old, renamed)
        else:
            store.rename(old, renamed)
        self._olds[renamed.urn] = renamed
        for resources in (self._olds, self._interrupted):
            for urn, resource in list(resources.items()):
                resources[urn] = following(resource, old, renamed.urn)
