"""Recognises resources that the program has renamed, and renames them in the state."""

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
        """The state's resources by URN, the interrupted creates, and the early deletions: all of them are renamed."""
        self._run = run
        self._olds = olds
        self._interrupted = interrupted
        self._replacement = replacement
        self.claimed: dict[str, str] = {}
        """The URNs that the program has registered, and where."""
        self._taken: dict[str, str] = {}
        """The renamed resource, by its former URN."""
        self._former: dict[str, tuple[str, ...]] = {}
        """The URNs under which its children may be in the state, by present URN."""

    def claim(self, urn: str) -> None:
        """Record that the program registers this URN; may have to wait. Raises StackError for a second registration."""
        with self._run.lock:
            if urn in self.claimed:
                place = place_of(self.claimed[urn])
                other = f"; the other one is at {place}" if place else ""
                raise StackError(f"two resources have this URN: change the name or parent of one{other}", urn)
            if urn in self._taken:
                raise StackError(f"{urn} is an alias of {self._taken[urn]}, which took over its resource", urn)
            self.claimed[urn] = self._run.positions.get(urn, "")
            self._replacement.mark_registered(urn)

    def recognise(self, urn: str, goal: Goal) -> None:
        """Rename the old resource found under an alias. Raises StackError if another resource has that URN.

        The journal records this first, so that the resource has only one name in all that follows.
        """
        old = self._former_urn(urn, goal)
        if old is None:
            return
        with self._run.lock:
            interrupted = self._interrupted.pop(old, None)
        if interrupted is not None:
            # Under its original name: a repeated create is safe only with the same request.
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
            # The resource may have its name already and its children not: a run was killed between the two.
            self._former[urn] = tuple(former)
            if urn in self._olds or urn in self._interrupted:
                return None
            old = next((u for u in former if self._is_known(u)), None)
            if old is None:
                return None
            self._replacement.mark_registered(old)
            if old in self.claimed or old in self._taken:
                other = self._taken.get(old, old)
                raise StackError(f"its alias {old} is the URN of {other}: change one of them", urn)
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
