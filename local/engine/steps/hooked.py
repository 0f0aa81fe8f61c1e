"""A custom resource's step with the program's hooks around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeVar

from local.engine.stack.resource import ResourceState
from local.plugins.provider import OutcomeUnknown, ProviderError

Operation = Literal["create", "update", "delete"]

Done = TypeVar("Done", bound=ResourceState | None)


class HookError(ProviderError):
    """A hook that must run before a step failed or does not exist; the step did not begin."""


class StepHooks(Protocol):
    """The hooks of a running program (`program.hooks.Hooks`). `new` is None in a delete, `old` in a create."""

    def before(self, operation: Operation, old: ResourceState | None, new: ResourceState | None) -> None:
        """Run the hooks before a step. Raises HookError."""

    def after(self, operation: Operation, old: ResourceState | None, new: ResourceState | None) -> None:
        """Run the hooks after a step."""

    def retry(
        self, operation: Operation, old: ResourceState | None, new: ResourceState | None, errors: Sequence[str]
    ) -> bool:
        """Whether a failed operation is tried again."""


def carry_out(
    hooks: StepHooks | None,
    operation: Operation,
    old: ResourceState | None,
    new: ResourceState | None,
    step: Callable[[], Done],
) -> Done:
    """Carry out a step with its hooks, again while error hooks ask for it. Raises ProviderError.

    Without a running program there are no hooks, only the step.
    """
    if hooks is None:
        return step()
    hooks.before(operation, old, new)
    errors: list[str] = []
    while True:
        try:
            done = step()
            break
        except OutcomeUnknown:
            # The next run must find out what happened before it tries again.
            raise
        except ProviderError as error:
            errors.insert(0, str(error))
            if not hooks.retry(operation, old, new, errors):
                raise
    hooks.after(operation, old, done)
    return done


def delete_hooks(resource: ResourceState) -> tuple[str, ...]:
    """The names of the hooks without which the resource must not be deleted."""
    bound = resource.resource_hooks
    return (*bound.get("BeforeDelete", ()), *bound.get("AfterDelete", ()))
