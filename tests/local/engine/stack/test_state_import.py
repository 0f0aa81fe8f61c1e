"""`stack import`: what it accepts, its errors, and what remains of the previous state."""

from __future__ import annotations

import copy
import io
import json
import os
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.engine.cli import main
from local.engine.stack.lock import LockedError, StackLock
from local.engine.stack.secrets import SecretsError, new_crypter
from local.engine.stack.session import open_session
from local.engine.stack.snapshot import Operation
from local.engine.stack.state import BACKUP_FILE, JOURNAL_FILE, STATE_FILE, StateError
from local.engine.stack.state_import import import_state, problems

pytestmark = pytest.mark.engine

ROOT = "urn:pulumi:dev::test::pulumi:pulumi:Stack::test-dev"
GROUP = "urn:pulumi:dev::test::test:index:Group::group"
PROVIDER = "urn:pulumi:dev::test::pulumi:providers:memory::default"
THING = "urn:pulumi:dev::test::test:index:Group$memory:index:Thing::thing"
WIRE_SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


def program(kit: Any) -> Callable[[], None]:
    def declare() -> None:
        import pulumi

        group = kit.Group("group")
        thing = kit.Thing("thing", pulumi.ResourceOptions(parent=group), size=pulumi.Output.secret("hidden-size"))
        pulumi.export("address", thing.address)

    return declare


def exported(stack: Any) -> Any:
    return stack.open().store.export()


def without_times(document: Any) -> Any:
    """The state in readable form, in which two exports of it must agree."""
    resources = copy.deepcopy(document["deployment"]["resources"])
    for resource in resources:
        resource.pop("created", None)
        resource.pop("modified", None)
    return resources


def a_state(*resources: dict[str, Any]) -> dict[str, Any]:
    root = {"urn": ROOT, "custom": False, "type": "pulumi:pulumi:Stack"}
    version = "v3.260.0"
    manifest = {"version": version, "magic": sha256(version.encode()).hexdigest()}
    return {"manifest": manifest, "resources": [root, *resources]}


def a_provider(**more: Any) -> dict[str, Any]:
    return {"urn": PROVIDER, "custom": True, "id": "p-1", "type": "pulumi:providers:memory", **more}


def a_thing(**more: Any) -> dict[str, Any]:
    urn = "urn:pulumi:dev::test::memory:index:Thing::thing"
    return {"urn": urn, "custom": True, "id": "t-1", "type": "memory:index:Thing", "parent": ROOT, **more}


def test_after_an_import_the_next_preview_is_empty(stack: Any, kit: Any) -> None:
    stack.up(program(kit))
    document = stack.open().store.export(show_secrets=True)
    stack.forget()

    imported = import_state(stack.request, exported_with_ciphertexts(stack, document))
    seen = stack.preview(program(kit))

    assert imported.resources == 4 and imported.warnings == () and imported.backup is None
    assert seen.ok and set(seen.counts) == {"same"}
    assert stack.up(program(kit)).counts == seen.counts
    assert without_times(stack.open().store.export(show_secrets=True)) == without_times(document)


def exported_with_ciphertexts(stack: Any, document: Any) -> Any:
    """The plain export as an encrypted one, by way of the stack itself."""
    import_state(stack.request, document)
    encrypted = exported(stack)
    stack.forget()
    return encrypted


def test_an_export_with_its_secrets_shown_needs_no_passphrase_and_is_encrypted_here(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.up(program(kit))
    document = stack.open().store.export(show_secrets=True)
    assert "hidden-size" in json.dumps(document)
    stack.forget()
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "another one")
    stack.configure({}, salt="")

    import_state(stack.request, document)

    assert "hidden-size" not in stack.files()
    assert set(stack.preview(program(kit)).counts) == {"same"}


def test_a_state_with_another_passphrase_is_refused_with_the_remedy(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.up(program(kit))
    document = exported(stack)
    stack.forget()
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "another one")
    stack.configure({}, salt="")

    with pytest.raises(SecretsError, match="--show-secrets"):
        import_state(stack.request, document)
    assert not (stack.stack_dir / STATE_FILE).exists()


def test_a_state_with_another_secrets_provider_is_refused_with_the_remedy(stack: Any) -> None:
    secret = {**WIRE_SECRET, "ciphertext": "AAAB"}
    state = a_state(a_provider(inputs={"token": secret})) | {"secrets_providers": {"type": "service"}}

    with pytest.raises(SecretsError, match=r"'service'.*--show-secrets"):
        import_state(stack.request, {"version": 3, "deployment": state})


@pytest.mark.parametrize("of_the_file", [True, False])
def test_the_stack_files_salt_becomes_the_states_and_without_one_the_states_own_stays(
    stack: Any, kit: Any, *, of_the_file: bool
) -> None:
    stack.up(program(kit))
    document = exported(stack)
    theirs = document["deployment"]["secrets_providers"]["state"]["salt"]
    ours = new_crypter(os.environ["PULUMI_CONFIG_PASSPHRASE"]).salt
    stack.forget()
    stack.configure({}, salt=ours if of_the_file else "")

    import_state(stack.request, document)

    kept = json.loads((stack.stack_dir / STATE_FILE).read_text())["deployment"]["secrets_providers"]
    assert kept == {"type": "passphrase", "state": {"salt": ours if of_the_file else theirs}}
    assert set(stack.preview(program(kit)).counts) == {"same"}


def test_fields_of_a_newer_cli_survive_import_and_up(stack: Any, kit: Any) -> None:
    stack.up(program(kit))
    document = exported(stack)
    for resource in document["deployment"]["resources"]:
        resource["ofTomorrow"] = {"of": resource["type"]}
    document["deployment"]["snippets"] = []

    imported = import_state(stack.request, document)
    stack.configure({"test:touched": "yes"})
    stack.up(program(kit))

    assert imported.warnings == ("unknown to this engine and not imported: snippets",)
    for resource in exported(stack)["deployment"]["resources"]:
        assert resource["ofTomorrow"] == {"of": resource["type"]}


def test_pending_operations_are_imported_and_the_next_up_resolves_them(stack: Any, kit: Any) -> None:
    stack.up(program(kit))
    document = exported(stack)
    deployment = document["deployment"]
    (thing,) = [r for r in deployment["resources"] if r["urn"] == THING]
    deployment["resources"].remove(thing)
    begun = {k: v for k, v in thing.items() if k not in ("id", "outputs")}
    deployment["pending_operations"] = [{"resource": begun, "type": "creating"}]
    stack.cloud.objects.clear()

    (warning,) = import_state(stack.request, document).warnings
    done = stack.up(program(kit))

    assert warning.endswith(f"creating {THING}")
    assert done.ok and "thing-a" in stack.cloud.objects
    assert "pending_operations" not in exported(stack)["deployment"]


def with_pending(stack: Any, operation: str, *left_out: str) -> Any:
    """The stack's state after a run, with this operation pending on its thing."""
    document = exported(stack)
    (thing,) = [r for r in document["deployment"]["resources"] if r["urn"] == THING]
    begun = {k: v for k, v in thing.items() if k not in left_out}
    document["deployment"]["pending_operations"] = [{"resource": begun, "type": operation}]
    return document


def test_an_update_that_a_kill_of_the_cli_interrupted_is_repeated_without_an_id_in_the_state(
    stack: Any, kit: Any
) -> None:
    stack.up(program(kit))
    import_state(stack.request, with_pending(stack, "updating", "id", "outputs"))

    done = stack.up(program(kit))

    assert done.counts == {"same": 2, "update": 1}
    assert stack.cloud.asked("update") == ["update thing"]


def test_a_create_that_the_cli_has_repeated_is_not_repeated_again(stack: Any, kit: Any) -> None:
    """The CLI keeps it pending beside the object, and warns of it in every run."""
    stack.up(program(kit))
    stack.cloud.calls.clear()

    (warning,) = import_state(stack.request, with_pending(stack, "creating", "id", "outputs")).warnings
    done = stack.up(program(kit))

    assert warning.startswith(f"{THING}: dropped an interrupted create, because thing-a was made after it")
    assert set(done.counts) == {"same"}
    assert stack.cloud.asked("create") == []


def test_an_import_keeps_the_previous_state_with_its_journal(stack: Any, kit: Any) -> None:
    stack.up(program(kit))
    document = exported(stack)
    before = (stack.stack_dir / STATE_FILE).read_text()
    (stack.stack_dir / JOURNAL_FILE).write_text('{"op":"end","number":7}\n')

    imported = import_state(stack.request, document)

    assert imported.backup == stack.stack_dir / BACKUP_FILE
    assert (stack.stack_dir / BACKUP_FILE).read_text() == before
    assert (stack.stack_dir / f"{JOURNAL_FILE}.bak").exists() and not (stack.stack_dir / JOURNAL_FILE).exists()


def test_a_damaged_state_can_be_replaced(stack: Any, kit: Any) -> None:
    stack.up(program(kit))
    document = exported(stack)
    (stack.stack_dir / STATE_FILE).write_text("{")

    import_state(stack.request, document)

    assert set(stack.preview(program(kit)).counts) == {"same"}


def test_a_secret_within_a_secret_is_imported_as_one(stack: Any) -> None:
    within = WIRE_SECRET | {"plaintext": json.dumps("hidden")}
    outer = WIRE_SECRET | {"plaintext": json.dumps({"deep": [within], "size": 1})}
    state = a_state(a_provider(), a_thing(provider=f"{PROVIDER}::p-1", outputs={"whole": outer}))

    import_state(stack.request, {"version": 3, "deployment": state})

    thing = stack.open().store.export(show_secrets=True)["deployment"]["resources"][-1]
    assert json.loads(thing["outputs"]["whole"]["plaintext"]) == {"deep": ["hidden"], "size": 1}
    assert "hidden" not in (stack.stack_dir / STATE_FILE).read_text()


def test_an_import_during_a_run_is_refused(stack: Any, kit: Any) -> None:
    stack.up(program(kit))
    document = exported(stack)
    with StackLock(stack.stack_dir), pytest.raises(LockedError, match="another run"):
        import_state(stack.request, document)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "`deployment` is missing"),
        ({"version": 3}, "`deployment` is missing"),
        ({"version": 2, "deployment": {}}, "version 2 is not one of 3, 4"),
        ({"version": 3, "deployment": {"resources": "all"}}, "deployment: `resources` cannot be a string"),
        ({"version": 3, "deployment": "all"}, "`deployment` is not a map"),
        ({"version": 3, "deployment": {"manifest": [1]}}, "deployment: `manifest` cannot be this list"),
        ({"version": 3, "deployment": {"secrets_providers": {"state": 7}}}, "`state` cannot be a number"),
        ({"version": 3, "deployment": {"pending_operations": [{"type": "creating"}]}}, "no `resource`"),
        ({"version": 3, "deployment": {"resources": [{"urn": ["u"]}]}}, "resources.0.: `urn` cannot be this list"),
        ({"version": 3, "deployment": {"resources": [{"outputs": "x"}]}}, "resources.0.: `outputs` cannot be a string"),
        ({"version": 3, "deployment": {"resources": [{"propertyDependencies": {"a": 1}}]}}, "`propertyDependencies`"),
        ({"version": 3, "deployment": {"resources": [{"stackTrace": [None]}]}}, "`stackTrace` cannot be this list"),
    ],
)
def test_a_malformed_export_is_refused_even_with_force(stack: Any, document: Any, said: str) -> None:
    with pytest.raises(StateError, match=said):
        import_state(stack.request, document, force=True)


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ([{"custom": True, "type": "t"}], "resource 1: `urn` is missing"),
        ([{"custom": True, "urn": "urn:x"}], "resource 1: `type` is missing"),
        ([{"custom": False, "urn": "thing", "type": "t"}], "'thing' is not a valid URN"),
        (
            [{"custom": False, "urn": "urn:pulumi:prod::test::t:m:T::n", "type": "t:m:T"}],
            "belongs to stack 'prod' of project 'test', not to 'dev' of 'test'",
        ),
        (
            [{"custom": False, "urn": "urn:pulumi:dev::other::t:m:T::n", "type": "t:m:T"}],
            "belongs to stack 'dev' of project 'other', not to 'dev' of 'test'",
        ),
        ([a_thing(type="memory:index:Other")], "`type` is 'memory:index:Other'"),
        ([a_thing(custom=False)], "is a component but has an id"),
        ([a_thing(parent=GROUP)], f"its parent {GROUP} is missing"),
        ([a_thing(dependencies=[PROVIDER]), a_provider()], f"its dependency {PROVIDER} comes after it"),
        ([a_thing(propertyDependencies={"size": [GROUP]})], f"its property size's dependency {GROUP} is missing"),
        ([a_thing(deletedWith=GROUP)], f"its deletedWith {GROUP} is missing"),
        ([a_provider(), a_thing(provider=f"{PROVIDER}::other")], f"its provider {PROVIDER}::other is missing"),
        ([a_thing(), a_thing()], "duplicate URN"),
        ([a_thing(viewOf=ROOT)], "is a view of another resource"),
        ([a_thing(refreshBeforeUpdate=True)], "is to be refreshed before each update"),
    ],
)
def test_an_error_in_an_imported_state_is_named_with_its_resource(resources: list[dict[str, Any]], said: str) -> None:
    found = list(problems(a_state(*resources), "test", "dev"))
    assert any(said in each for each in found), found


def test_a_replaced_resource_may_stand_beside_its_successor() -> None:
    state = a_state(a_provider(), a_thing(provider=f"{PROVIDER}::p-1"), a_thing(delete=True, id="t-0"))
    assert list(problems(state, "test", "dev")) == []


def test_a_changed_manifest_is_noticed() -> None:
    state = a_state() | {"manifest": {"version": "v3.1.0", "magic": "0"}}
    assert list(problems(state, "test", "dev")) == [
        "manifest: `magic` does not match `version`: the file is damaged or was edited"
    ]


def test_a_manifest_without_a_version_needs_no_magic() -> None:
    # As in the CLI: a program that does not know its version writes neither.
    state = a_state() | {"manifest": {"time": "2026-01-01T00:00:00Z", "version": "", "magic": ""}}
    assert list(problems(state, "test", "dev")) == []


def test_an_import_killed_before_the_new_state_is_written_changes_nothing(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.up(program(kit))
    store = open_session(stack.request, writable=True).store
    store.begin(Operation.DELETING, store.snapshot.live()[THING])
    document = {"version": 3, "deployment": a_state()}

    with monkeypatch.context() as killed, pytest.raises(SystemExit):
        killed.setattr(Path, "replace", lambda *_: sys.exit("killed"))
        import_state(stack.request, document)

    assert [str(p.operation) for p in stack.open().store.snapshot.pending.values()] == ["deleting"]


def test_an_import_killed_after_the_new_state_is_written_ignores_the_old_journal(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.up(program(kit))
    store = open_session(stack.request, writable=True).store
    store.begin(Operation.DELETING, store.snapshot.live()[THING])
    replace = Path.replace

    def killing(path: Path, target: Path) -> Path:
        return sys.exit("killed") if path.name == JOURNAL_FILE else replace(path, target)

    with monkeypatch.context() as killed, pytest.raises(SystemExit):
        killed.setattr(Path, "replace", killing)
        import_state(stack.request, {"version": 3, "deployment": a_state()})

    assert (stack.stack_dir / JOURNAL_FILE).exists()
    assert not stack.open().store.snapshot.pending


def test_a_state_with_errors_is_imported_only_by_force(stack: Any, kit: Any) -> None:
    stack.up(program(kit))
    files = stack.files()
    wrong = {"version": 3, "deployment": a_state(*(a_thing(parent=f"{ROOT}-{n}") for n in range(12)))}

    with pytest.raises(StateError, match="and 13 more"):
        import_state(stack.request, wrong)
    assert stack.files() == files

    assert len(import_state(stack.request, wrong, force=True).warnings) == 23


def call(stack: Any, *arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    where = ["--stack", "dev", "--cwd", str(stack.directory), "--state", str(stack.directory / "state")]
    return main(["stack", *arguments, *where], out), out.getvalue()


def test_an_export_with_secrets_is_readable_only_by_its_user(stack: Any, kit: Any) -> None:
    stack.up(program(kit))
    file = stack.directory / "export.json"
    file.write_text("")
    file.chmod(0o644)

    assert call(stack, "export", "--file", str(file), "--show-secrets")[0] == 0

    assert "hidden-size" in file.read_text() and file.stat().st_mode & 0o777 == 0o600


def test_the_command_line_exports_to_a_file_or_standard_output_and_imports_from_either(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.up(program(kit))
    file = stack.directory / "export.json"
    assert call(stack, "export", "--file", str(file)) == (0, "")
    assert file.stat().st_mode & 0o077 == 0
    code, text = call(stack, "export", "--show-secrets")
    assert code == 0 and "hidden-size" in text

    assert call(stack, "import", "--file", str(file)) == (0, "Import complete: 4 resources.\n")
    assert str(stack.stack_dir / BACKUP_FILE) in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert call(stack, "import") == (0, "Import complete: 4 resources.\n")
    assert set(stack.preview(program(kit)).counts) == {"same"}


def test_the_command_line_reports_errors_of_an_import(
    stack: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("resources:"))
    assert call(stack, "import")[0] == 1
    assert "standard input is not JSON" in capsys.readouterr().err

    wrong = {"version": 3, "deployment": a_state(a_thing(parent=GROUP))}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(wrong)))
    assert call(stack, "import")[0] == 1
    assert "(use --force to import it anyway)" in capsys.readouterr().err

    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(wrong)))
    assert call(stack, "import", "--force")[0] == 0
    assert "warning: " in capsys.readouterr().err


def test_an_import_does_not_change_the_stack_file(stack: Any, kit: Any) -> None:
    stack.up(program(kit))
    before = yaml.safe_load((stack.directory / "Pulumi.dev.yaml").read_text())
    import_state(stack.request, exported(stack))
    assert yaml.safe_load((stack.directory / "Pulumi.dev.yaml").read_text()) == before
