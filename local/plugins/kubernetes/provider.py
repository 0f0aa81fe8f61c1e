"""The Kubernetes provider: Pulumi's provider protocol for the objects of one API server.

It behaves as pulumi-kubernetes with server-side apply does, except:
- a resource's field manager is derived from its URN, so that a run recognises what an interrupted one made;
- drift is what others changed since the state was written, so the server's own spelling of a value is not drift;
- an ambient kubeconfig is never used.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cloud_controller.kube import (
    ApiError,
    ConflictError,
    Kube,
    KubeconfigError,
    NotFoundError,
    Object,
    Resource,
)
from local.plugins.kubernetes import live as live_objects
from local.plugins.kubernetes.api_types import ApiType, UnsupportedTypeError, type_of_urn
from local.plugins.kubernetes.apply import (
    FieldConflict,
    apply,
    describe,
    field_manager_of,
    with_live_values,
)
from local.plugins.kubernetes.check import (
    PATCH_FORCE,
    PROPAGATION,
    SKIP_AWAIT,
    TIMEOUT_SECONDS,
    WAIT_FOR,
    annotation,
    check_inputs,
    is_autonamed,
)
from local.plugins.kubernetes.diff import diff_inputs, replaced_if_unready, wants_replacement
from local.plugins.kubernetes.errors import UnreachableClusterError, as_provider_errors
from local.plugins.kubernetes.existing import find, is_being_deleted, make_room, refuse_foreign
from local.plugins.kubernetes.normal_form import in_normal_form
from local.plugins.kubernetes.settings import is_other_cluster, parse_settings
from local.plugins.kubernetes.wait import NotReadyError, Waiter
from local.plugins.kubernetes.wait_for import parse_wait_for
from local.plugins.provider import (
    CheckFailure,
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    PartialFailure,
    ProviderError,
    ReadResult,
    Report,
    UpdateRequest,
)
from local.plugins.values import PropertyMap, Secret, has_unknowns, without_secrets

DEFAULT_TIMEOUT = 600.0
"""Seconds to wait for an object, as in Pulumi's provider."""
_PROPAGATIONS = {"foreground": "Foreground", "background": "Background", "orphan": "Orphan"}


class KubernetesProvider:
    """One configured instance; it may be used from many threads.

    With an unknown kubeconfig it checks and previews from the inputs alone.
    """

    accepts_secrets = True

    def __init__(self, config: PropertyMap) -> None:
        """Raises ProviderError for malformed or unsupported options."""
        self._settings = parse_settings(config)
        self._stop = threading.Event()
        self._unreachable = ""
        self._kube: Kube | None = None
        if self._settings.kubeconfig is not None:
            try:
                self._kube = Kube.from_kubeconfig(self._settings.kubeconfig, context=self._settings.context)
            except KubeconfigError as error:
                raise ProviderError(f"kubeconfig: {error}") from None

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        """What names another cluster. Raises ProviderError for malformed options."""
        new = parse_settings(config)
        if not is_other_cluster(self._settings, new):
            return ()
        return (
            ("kubeconfig",) if self._settings.cluster_identifier == new.cluster_identifier else ("clusterIdentifier",)
        )

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        try:
            api = type_of_urn(urn)
        except UnsupportedTypeError as error:
            return CheckResult(news, (CheckFailure("", str(error)),))
        namespaced = self._is_namespaced(api)
        return check_inputs(urn, api, olds, news, namespaced=namespaced, default_namespace=self._settings.namespace)

    def diff(self, request: DiffRequest) -> DiffResult:
        api, news = type_of_urn(request.urn), request.news
        # Drift is in the old inputs already: `read` puts it there. A state may be older than the normal form.
        kept = live_objects.as_kept(in_normal_form(api, request.old_inputs), request.old_outputs)
        old_inputs = live_objects.with_namespace(kept, live_objects.split_id(request.id)[0])
        mutable = {"ConfigMap": self._settings.config_map_mutable, "Secret": self._settings.secret_mutable}
        result = diff_inputs(
            api, old_inputs, news, request.ignore_changes, mutable_data=not api.group and mutable.get(api.kind, False)
        )
        # A state may be older than the end of a Job: a completed one must not run again.
        live = self._live(api, request.id) if wants_replacement(api, news) else None
        return replaced_if_unready(api, result, live, news) if live is not None else result

    def create(self, request: CreateRequest) -> CreateResult:
        api, manager, inputs = type_of_urn(request.urn), field_manager_of(request.urn), request.inputs
        if request.preview and (self._kube is None or has_unknowns(inputs)):
            return CreateResult("", inputs)
        obj = live_objects.to_api(inputs)
        deadline = self._deadline(inputs, request.timeout)
        if request.preview:
            return CreateResult("", self._preview_creation(api, obj, inputs, manager))
        with self._errors(api, obj):
            resource = self._resource(api)
            obj = self._placed(resource, obj)
            live = self._stored(resource, obj, inputs, manager, deadline, request.report)
        return CreateResult(
            live_objects.object_id(live), self._await(api, resource, live, inputs, manager, deadline, request.report)
        )

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        api = type_of_urn(urn)
        namespace, name = live_objects.split_id(id)
        subject = {"metadata": {"namespace": namespace, "name": name}}
        try:
            with self._errors(api, subject, gone_passes=True):
                live = self._connected().get(self._resource(api), name, namespace)
        except NotFoundError:
            return ReadResult(None, {})
        except UnreachableClusterError:
            if self._settings.delete_unreachable:
                return ReadResult(None, {})
            raise
        if inputs:
            read_inputs = live_objects.drifted_inputs(inputs, outputs, live)
            if (api.group, api.kind) == ("", "Secret") and read_inputs != inputs and "data" in read_inputs:
                # Foreign data in a Secret is as secret as the declared data.
                read_inputs["data"] = Secret(without_secrets(read_inputs["data"]))
        else:
            read_inputs = live_objects.inputs_from_live(live)
        manager = str(outputs.get(live_objects.FIELD_MANAGER) or field_manager_of(urn))
        return ReadResult(
            live_objects.object_id(live), live_objects.outputs_of(api, live, read_inputs, manager), read_inputs
        )

    def update(self, request: UpdateRequest) -> PropertyMap:
        # The old inputs do not matter: the API server knows what this manager applied before.
        api, news, preview = type_of_urn(request.urn), request.news, request.preview
        if preview and (self._kube is None or has_unknowns(news)):
            return news
        manager = str(request.old_outputs.get(live_objects.FIELD_MANAGER) or field_manager_of(request.urn))
        obj = live_objects.to_api(news)
        deadline = self._deadline(news, request.timeout)
        namespace, name = live_objects.split_id(request.id)
        with self._errors(api, obj, preview=preview):
            kube, resource = self._connected(), self._resource(api)
            obj = self._placed(resource, obj)
            if request.ignore_changes:
                obj = with_live_values(obj, kube.get(resource, name, namespace), request.ignore_changes)
            try:
                live = apply(kube, resource, obj, manager, force=self._forces(news), dry_run=preview)
            except FieldConflict:
                existing = find(kube, resource, obj)
                if existing is None or not is_being_deleted(existing):
                    raise
                live = existing  # Whoever owns its fields: it is deleted and recreated.
            if is_being_deleted(live) and not preview:
                live = self._stored_anew(resource, obj, news, manager, deadline, request.report)
        if preview:
            return live_objects.outputs_of(api, live, news, manager)
        return self._await(api, resource, live, news, manager, deadline, request.report)

    def delete(self, request: DeleteRequest) -> None:
        api, inputs, report = type_of_urn(request.urn), request.inputs, request.report
        namespace, name = live_objects.split_id(request.id)
        subject = {"metadata": {"namespace": namespace, "name": name}}
        uid = (without_secrets(request.outputs.get("metadata")) or {}).get("uid")
        deadline = self._deadline(inputs, request.timeout)
        try:
            with self._errors(api, subject, gone_passes=True):
                kube, resource = self._connected(), self._resource(api)
                live = kube.get(resource, name, namespace)
                if uid and live["metadata"]["uid"] != uid:
                    report("already gone; another object with this name exists and stays")
                    return
                propagation = _PROPAGATIONS.get(annotation(inputs, PROPAGATION).lower(), "Foreground")
                try:
                    kube.delete(resource, name, namespace, uid=live["metadata"]["uid"], propagation=propagation)
                except ConflictError:
                    # Deleted and recreated by others since: the precondition protects the new one. Or it was rejected.
                    if kube.get(resource, name, namespace)["metadata"]["uid"] == live["metadata"]["uid"]:
                        raise
                    report("already gone; another object with this name exists and stays")
                    return
                if annotation(inputs, SKIP_AWAIT) != "true":
                    self._waiter().until_gone(resource, live, deadline, report)
        except NotFoundError:
            return
        except NotReadyError as error:
            raise ProviderError(f"{api.kind} {request.id} was not deleted in time: {error}") from None
        except UnreachableClusterError:
            if not self._settings.delete_unreachable:
                raise

    def interrupt(self) -> None:
        """End all waits for objects, which may take ten minutes."""
        self._stop.set()

    def close(self) -> None:
        """Close the connections and end all waits."""
        self.interrupt()
        if self._kube is not None:
            self._kube.close()

    def _stored(
        self,
        resource: Resource,
        obj: dict[str, Any],
        inputs: PropertyMap,
        manager: str,
        deadline: float,
        report: Report,
    ) -> Object:
        kube, waiter = self._connected(), self._waiter()
        # A random name is unique, so the look-up can be skipped.
        if not is_autonamed(inputs):
            make_room(kube, resource, obj, manager, waiter, deadline, report)
        live = apply(kube, resource, obj, manager, force=self._forces(inputs))
        if is_being_deleted(live):
            # Made by an interrupted run, and being deleted.
            return self._stored_anew(resource, obj, inputs, manager, deadline, report)
        return live

    def _stored_anew(
        self,
        resource: Resource,
        obj: dict[str, Any],
        inputs: PropertyMap,
        manager: str,
        deadline: float,
        report: Report,
    ) -> Object:
        """The object in place of one that is being deleted."""
        kube = self._connected()
        make_room(kube, resource, obj, manager, self._waiter(), deadline, report)
        return apply(kube, resource, obj, manager, force=self._forces(inputs))

    def _preview_creation(self, api: ApiType, obj: dict[str, Any], inputs: PropertyMap, manager: str) -> PropertyMap:
        """The outputs of a dry run, or the inputs where none is possible because this run makes a dependency."""
        with self._errors(api, obj, preview=True):
            kube = self._connected()
            try:
                resource = self._resource(api)
                obj = self._placed(resource, obj)
                existing = None if is_autonamed(inputs) else find(kube, resource, obj)
                if existing is not None:
                    # Ours, to be replaced under its name: a dry run would update the old one.
                    refuse_foreign(resource, obj, existing, manager)
                    return inputs
                live = apply(kube, resource, obj, manager, force=self._forces(inputs), dry_run=True)
            except NotFoundError:
                return inputs  # The namespace, or the kind's definition, does not exist yet.
        return live_objects.preview_outputs(live_objects.outputs_of(api, live, inputs, manager))

    def _placed(self, resource: Resource, obj: dict[str, Any]) -> dict[str, Any]:
        """The object with a namespace if its kind is namespaced: a check without discovery cannot know that."""
        return live_objects.with_namespace(obj, self._settings.namespace) if resource.namespaced else obj

    def _await(
        self,
        api: ApiType,
        resource: Resource,
        live: Object,
        inputs: PropertyMap,
        manager: str,
        deadline: float,
        report: Report,
    ) -> PropertyMap:
        """The outputs when the object is ready."""
        if annotation(inputs, SKIP_AWAIT) == "true":
            report("Skipping await logic")
            return live_objects.outputs_of(api, live, inputs, manager)
        problem = ""
        try:
            wait_for = annotation(inputs, WAIT_FOR)
            declared = parse_wait_for(wait_for) if wait_for else None
            live = self._waiter().until_ready(resource, live, deadline, report, declared)
        except NotReadyError as error:
            problem = str(error)
        except ApiError as error:
            problem = f"it cannot be watched: {error.message}"
        if problem:
            live = self._latest(resource, live)
            outputs = live_objects.outputs_of(api, live, inputs, manager)
            message = f"{describe(resource, live)} is not ready: {problem}"
            raise PartialFailure(message, live_objects.object_id(live), outputs)
        return live_objects.outputs_of(api, live, inputs, manager)

    def _live(self, api: ApiType, id: str) -> Object | None:
        """The current object; None if it cannot be determined."""
        namespace, name = live_objects.split_id(id)
        try:
            return self._connected().get(self._resource(api), name, namespace)
        except (ApiError, ProviderError):
            return None

    def _latest(self, resource: Resource, live: Object) -> Object:
        try:
            return find(self._connected(), resource, live) or live
        except ApiError:
            return live  # The last stored version is still good enough for the state.

    def _is_namespaced(self, api: ApiType) -> bool | None:
        if api.namespaced is not None or self._kube is None:
            return api.namespaced
        try:
            return self._kube.resource(api.api_version, api.kind).namespaced
        except ApiError:
            return None  # This run may make the definition; the creation reports any other error.

    def _resource(self, api: ApiType) -> Resource:
        return self._connected().resource(api.api_version, api.kind)

    def _connected(self) -> Kube:
        if self._kube is None:
            raise ProviderError("the cluster's kubeconfig is not known yet")
        if self._unreachable:
            raise UnreachableClusterError(self._unreachable)
        return self._kube

    def _waiter(self) -> Waiter:
        return Waiter(self._connected(), self._stop)

    def _forces(self, inputs: PropertyMap) -> bool:
        return self._settings.patch_force or annotation(inputs, PATCH_FORCE) == "true"

    def _deadline(self, inputs: PropertyMap, timeout: float) -> float:
        seconds = timeout or float(annotation(inputs, TIMEOUT_SECONDS) or DEFAULT_TIMEOUT)
        return time.monotonic() + seconds

    @contextmanager
    def _errors(
        self, api: ApiType, obj: dict[str, Any], *, gone_passes: bool = False, preview: bool = False
    ) -> Iterator[None]:
        subject = f"{api.kind} {live_objects.object_id(obj)}"
        try:
            with as_provider_errors(subject, gone_passes=gone_passes):
                yield
        except UnreachableClusterError as error:
            if preview:
                # Remembered: the other objects must not wait for their own time-outs.
                self._unreachable = str(error)
            raise
