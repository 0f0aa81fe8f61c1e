"""Resource hooks: functions of the program that run before and after a step and decide about retries.

A resource refers to hooks by name, and the state keeps these names; the functions exist only while the program runs
that registered them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pulumi.runtime.proto import callback_pb2, resource_pb2

from local.engine.events import Diagnostic
from local.engine.program.callbacks import CallbackError, Callbacks
from local.engine.stack.resource import ResourceState
from local.engine.steps.hooked import HookError, Operation
from local.engine.steps.run import Run
from local.plugins.wire import to_struct

_KINDS: Final = {
    "BeforeCreate": "before_create",
    "AfterCreate": "after_create",
    "BeforeUpdate": "before_update",
    "AfterUpdate": "after_update",
    "BeforeDelete": "before_delete",
    "AfterDelete": "after_delete",
    "OnError": "on_error",
}
"""Pulumi's kinds of hooks, as in the state, and their fields in a request."""

MAX_TRIES: Final = 100
"""The most tries of an operation, whatever its error hooks answer."""

REGISTRATION_SECONDS: Final = 30.0
"""How long a step waits for a hook that the running program has not registered yet."""

Registered = TypeVar("Registered")


@dataclass(frozen=True, slots=True)
class _Hook:
    callback: callback_pb2.Callback
    on_dry_run: bool
    ignore_errors: bool


class Hooks:
    """The hooks that a running program has registered. Safe from several threads."""

    def __init__(self, run: Run, callbacks: Callbacks) -> None:
        self._run = run
        self._callbacks = callbacks
        self._hooks: dict[str, _Hook] = {}
        self._error_hooks: dict[str, callback_pb2.Callback] = {}
        self._complete = False
        self._changed = threading.Condition()

    def register(self, request: resource_pb2.RegisterResourceHookRequest) -> None:
        """Register a resource hook. Raises ValueError if its name is empty or taken."""
        with self._changed:
            _check_new(request.name, self._hooks)
            self._hooks[request.name] = _Hook(request.callback, request.on_dry_run, request.ignore_errors)
            self._changed.notify_all()

    def register_error_hook(self, request: resource_pb2.RegisterErrorHookRequest) -> None:
        """Register an error hook. Raises ValueError if its name is empty or taken."""
        with self._changed:
            _check_new(request.name, self._error_hooks)
            self._error_hooks[request.name] = request.callback
            self._changed.notify_all()

    def complete(self) -> None:
        """The program has ended and registers no more hooks."""
        with self._changed:
            self._complete = True
            self._changed.notify_all()

    def before(self, operation: Operation, old: ResourceState | None, new: ResourceState | None) -> None:
        """Run the hooks before a step. Raises HookError at the first failure, unless the hook ignores errors.

        `new` is None in a delete, `old` in a create.
        """
        for name in _bound(f"Before{operation.title()}", old, new):
            if error := self._failure(name, old, new, outputs=False):
                raise HookError(error)

    def after(self, operation: Operation, old: ResourceState | None, new: ResourceState | None) -> None:
        """Run the hooks after a step. A failure fails the run, unless the hook ignores errors; the step stays done."""
        for name in _bound(f"After{operation.title()}", old, new):
            if error := self._failure(name, old, new, outputs=True):
                self._run.fail(error, _either(new, old).urn)
                return

    def retry(
        self, operation: Operation, old: ResourceState | None, new: ResourceState | None, errors: Sequence[str]
    ) -> bool:
        """Whether an error hook asks for another try of a failed operation; all of them are called.

        `errors` are those of all tries, newest first.
        """
        urn = _either(new, old).urn
        names = _bound("OnError", old, new)
        if not names or self._run.dry_run or self._run.stopping:
            return False
        if len(errors) >= MAX_TRIES:
            self._warn(f"error hooks asked for more than {MAX_TRIES} tries, which is the limit", urn)
            return False
        answers = [self._wants_retry(name, operation, old, new, errors) for name in names]
        return any(answers)

    def _failure(self, name: str, old: ResourceState | None, new: ResourceState | None, *, outputs: bool) -> str:
        """Run a hook; its error, or "". An error that the hook ignores is only a warning."""
        hook = self._found(name, self._hooks)
        if hook is None:
            return f'hook "{name}" was not registered by the program'
        if self._run.dry_run and not hook.on_dry_run:
            return ""
        request = resource_pb2.ResourceHookRequest()
        _describe(request, old, new)
        if outputs and new is not None:
            request.new_outputs.CopyFrom(to_struct(new.outputs))
        try:
            error = self._callbacks.call(hook.callback, request, resource_pb2.ResourceHookResponse).error
        except CallbackError as failure:
            error = str(failure)
        if not error:
            return ""
        message = f'hook "{name}" failed: {error}'
        if hook.ignore_errors:
            self._warn(message, request.urn)
            return ""
        return message

    def _wants_retry(
        self,
        name: str,
        operation: Operation,
        old: ResourceState | None,
        new: ResourceState | None,
        errors: Sequence[str],
    ) -> bool:
        callback = self._found(name, self._error_hooks)
        request = resource_pb2.ErrorHookRequest(failed_operation=operation, errors=errors)
        _describe(request, old, new)
        try:
            if callback is None:
                raise CallbackError("it was not registered by the program")
            answer = self._callbacks.call(callback, request, resource_pb2.ErrorHookResponse)
            if answer.error:
                raise CallbackError(answer.error)
        except CallbackError as error:
            self._warn(f'error hook "{name}" failed: {error}', request.urn)
            return False
        return answer.retry

    def _found(self, name: str, registered: Mapping[str, Registered]) -> Registered | None:
        # A resource that another's replacement deletes early may have hooks that the program registers a moment later.
        with self._changed:
            self._changed.wait_for(lambda: name in registered or self._complete, REGISTRATION_SECONDS)
            return registered.get(name)

    def _warn(self, message: str, urn: str) -> None:
        self._run.emit(Diagnostic("warning", message, urn))


def binding_of(hooks: Any) -> dict[str, tuple[str, ...]]:
    """The names of hooks in a request, by kind of hook."""
    return {kind: tuple(names) for kind, field in _KINDS.items() if (names := getattr(hooks, field))}


def _check_new(name: str, taken: dict[str, Any]) -> None:
    if not name:
        raise ValueError("a hook has no name")
    if name in taken:
        raise ValueError(f'duplicate hook name "{name}"')


def _either(one: ResourceState | None, other: ResourceState | None) -> ResourceState:
    resource = one or other
    assert resource is not None
    return resource


def _bound(kind: str, old: ResourceState | None, new: ResourceState | None) -> tuple[str, ...]:
    # A delete has no new side: it runs the hooks of the last run.
    return _either(new, old).resource_hooks.get(kind, ())


def _describe(request: Any, old: ResourceState | None, new: ResourceState | None) -> None:
    """Fill the fields that both kinds of request have."""
    resource = _either(new, old)
    request.urn = resource.urn
    request.name = resource.name
    request.type = resource.type
    # Before an update the new side has no id yet.
    known = [side.id for side in (new, old) if side is not None and isinstance(side.id, str) and side.id]
    request.id = known[0] if known else ""
    if new is not None:
        request.new_inputs.CopyFrom(to_struct(new.inputs))
        request.new_options.CopyFrom(_options(new))
    if old is not None:
        request.old_inputs.CopyFrom(to_struct(old.inputs))
        request.old_outputs.CopyFrom(to_struct(old.outputs))
        request.old_options.CopyFrom(_options(old))


def _options(resource: ResourceState) -> resource_pb2.ResourceOptions:
    """The options of the resource that the state keeps."""
    timeouts = {k: f"{v:g}s" for k in ("create", "update", "delete") if (v := getattr(resource.timeouts, k))}
    binding = {_KINDS[kind]: names for kind, names in resource.resource_hooks.items()}
    options = resource_pb2.ResourceOptions(
        depends_on=resource.dependencies,
        ignore_changes=resource.ignore_changes,
        replace_on_changes=resource.replace_on_changes,
        provider=resource.provider,
        custom_timeouts=resource_pb2.RegisterResourceRequest.CustomTimeouts(**timeouts) if timeouts else None,
        deleted_with=resource.deleted_with,
        replace_with=resource.replace_with,
        hide_diff=resource.hide_diffs,
        additional_secret_outputs=resource.additional_secret_outputs,
        hooks=resource_pb2.RegisterResourceRequest.ResourceHooksBinding(**binding) if binding else None,
        parent=resource.parent,
        protect=resource.protect,
        retain_on_delete=resource.retain_on_delete,
    )
    # A keyword in Python.
    setattr(options, "import", resource.import_id)
    return options
