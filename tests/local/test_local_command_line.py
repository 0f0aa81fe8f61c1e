"""`python -m local`: the site, the stack's copy and Pulumi's CLI in the right order; errors that name the cause."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import local.__main__ as command_line
from components import cluster_end
from local import stack_copy
from local.api_site import SiteConfig
from local.clouds import CLOUDS
from local.mycloud.site import Site
from local.mycloud.status_text import addresses, render
from local.pulumi.cli import PulumiCli
from local.pulumi.secrets import PassphraseCrypter, SecretsError, new_crypter, open_crypter
from local.pulumi.toolchain import Toolchain
from local.stack_copy import write_stack_copy
from local.stack_file import StackFileError, check_stack_file, is_recorded, read_stack_file
from local.stack_run import DELETE_UNMANAGED

ENDPOINT = "http://127.32.0.1:7070"


class Cli:
    """In place of Pulumi's CLI on a stack."""

    def __init__(self, fakes: Fakes, project: Path, stack: str, stack_dir: Path) -> None:
        self.run = fakes.pulumi
        self.alone = PulumiCli(Toolchain(Path("pulumi"), {}), project, stack, stack_dir).alone

    def check_options(self, _: str, options: Sequence[str]) -> str:
        return f"unknown flag: {options[0]}" if "--targt" in options else ""


class Fakes:
    """A project of its own, a site that only records calls, a CLI that returns `code`."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state = directory / "state"
        self.calls: list[str] = []
        self.crashed: list[str] = []
        self.options: list[str] = []
        self.code = 0
        self.during_the_run: Callable[[], None] = lambda: None
        self.delete_unmanaged: str | None = None
        self.status: dict[str, Any] = {**STATUS}
        (directory / "stacks").mkdir()
        project = {"name": "cloud-controller", "runtime": "python", "stackConfigDir": "stacks"}
        declared = {"config": {"cloud": {}, "clusterName": "x"}}
        (directory / "Pulumi.yaml").write_text(yaml.safe_dump({**project, **declared}))
        self.stack_file = directory / "stacks" / "Pulumi.local.yaml"
        self.stack_file.write_text("config:\n  cloud-controller:cloud: mycloud\n")
        monkeypatch.setattr(command_line, "PROJECT", directory)
        monkeypatch.setenv("XDG_STATE_HOME", str(directory / "registry"))
        monkeypatch.setattr("local.stack_run.on_stack", lambda *of: Cli(self, *of))
        monkeypatch.setattr("local.commands.ensure_binaries", lambda _: self.calls.append("binaries"))
        monkeypatch.setattr(Site, "up", lambda site, _tell: self._up(site))
        monkeypatch.setattr(Site, "down", lambda _, keep_data=False, **__: self.calls.append(f"down {keep_data}"))
        monkeypatch.setattr(Site, "is_running", lambda _: self.status["up"])
        monkeypatch.setattr(Site, "wait_settled", lambda *_: self.calls.append("wait") if self.crashed else None)
        monkeypatch.setattr(Site, "wait_answering", lambda *_: True)
        monkeypatch.setattr(Site, "controllers_token", lambda _: ("controllers", "2999-12-31"))
        monkeypatch.setattr(Site, "crashed_machines", lambda _: self.crashed)
        monkeypatch.setattr(Site, "boot_crashed_machines", lambda _: self.calls.append("boot"))
        monkeypatch.setattr(Site, "end_simulated_machines", lambda _: self.calls.append("end simulated"))
        monkeypatch.setattr(Site, "status", lambda site: {**self.status, "state_folder": str(site.folder.root)})

    def _up(self, site: Site) -> None:
        self.calls.append("up")
        site.folder.cloud.mkdir(parents=True, exist_ok=True)
        site.folder.site_file.write_text(json.dumps({"block": 32, "endpoint": ENDPOINT}))
        site.folder.ensure_token()

    def pulumi(self, command: str, options: Sequence[str], environment: Mapping[str, str]) -> int:
        self.calls.append(f"pulumi {command}")
        self.options = [*options]
        self.delete_unmanaged = environment.get(DELETE_UNMANAGED)
        self.during_the_run()
        if command == "destroy" and self.code == 0 and "--target" not in options:
            self.status["load_balancers"] = []
            shutil.rmtree(self.state / "stacks" / "local" / "pulumi", ignore_errors=True)
        return self.code

    def run(self, *arguments: str) -> int:
        return command_line.main([*arguments, "--state", str(self.state)])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """While another run of the CLI changes the stack."""
        lock = self.state / "stacks/local/pulumi/.pulumi/locks/organization/p/local/x.json"
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.write_text(json.dumps({"pid": os.getpid(), "hostname": socket.gethostname(), "timestamp": "today"}))
        yield
        lock.unlink()

    def pretend_state(
        self, stack: str = "local", *, recorded: bool = False, outputs: dict[str, str] | None = None
    ) -> None:
        directory = self.state / "stacks" / stack
        directory.mkdir(parents=True, exist_ok=True)
        if not recorded:
            (directory / f"Pulumi.{stack}.yaml").touch()
        resource = {"urn": f"urn:pulumi:{stack}::p::pulumi:pulumi:Stack::p-{stack}", "type": "pulumi:pulumi:Stack"}
        outputs = outputs or {"webUrl": "http://127.35.0.10:8080/"}
        deployment = {"resources": [{**resource, "custom": False, "outputs": outputs}]}
        file = directory / "pulumi/.pulumi/stacks/p" / f"{stack}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"version": 3, "checkpoint": {"latest": deployment}}))


STATUS: dict[str, Any] = {
    "up": True,
    "block": 32,
    "endpoint": ENDPOINT,
    "processes": [{"name": "mycloud's API", "pid": 7, "log": "x"}],
    "clusters": [],
    "machines": [],
    "load_balancers": [
        {
            "id": "lb-1",
            "name": "web",
            "state": "available",
            "state_reason": None,
            "clusters": ["c-1"],
            "address": "127.35.0.10",
            "listeners": [{"protocol": "TCP", "port": 8080}, {"protocol": "UDP", "port": 53}],
            "backends": [
                {"backend_set": "a", "address": "10.33.0.10", "port": 1, "healthy": True, "checked": True},
                {"backend_set": "b", "address": "10.33.0.10", "port": 2, "healthy": None, "checked": False},
            ],
        }
    ],
}


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fakes]:
    """The command line changes the umask of its process, which is the other tests' too."""
    before = os.umask(0o022)
    yield Fakes(tmp_path, monkeypatch)
    os.umask(before)


@pytest.fixture(autouse=True)
def _quick_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE_FILE", raising=False)
    monkeypatch.setattr("local.pulumi.secrets.ITERATIONS", 10)
    yield


def test_up_brings_the_site_up_then_runs_the_stack_with_the_policies(
    fakes: Fakes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fakes.run("up") == 0

    assert (fakes.state / "stacks" / "local" / "Pulumi.local.yaml").exists()
    assert fakes.calls == ["binaries", "up", "pulumi up"]
    assert fakes.options == ["--policy-pack", str(tmp_path / "policy")]
    out = capsys.readouterr().out
    assert "Try it:\n  web\n    curl http://127.35.0.10:8080/\n" in out
    assert '"127.35.0.10", 53' in out


@pytest.mark.parametrize("command", ["up", "preview"])
def test_a_stacks_own_policy_configuration_is_used(fakes: Fakes, tmp_path: Path, command: str) -> None:
    settings = tmp_path / "stacks" / "policies.local.json"
    settings.write_text('{"all": "mandatory"}')

    assert fakes.run(command) == 0

    assert fakes.options[-2:] == ["--policy-pack-config", str(settings)]


def test_another_stack_file_becomes_the_copy_whatever_its_name(fakes: Fakes, tmp_path: Path) -> None:
    fakes.run("up")
    other = tmp_path / "other.yaml"
    other.write_text("config:\n  cloud-controller:cloud: mycloud\n  cloud-controller:clusterName: other\n")

    assert fakes.run("up", "--config-file", str(other)) == 0

    copy = fakes.state / "stacks" / "local" / "Pulumi.local.yaml"
    assert yaml.safe_load(copy.read_text())["config"]["cloud-controller:clusterName"] == "other"


def test_a_crashed_machine_is_named_with_the_command_that_boots_it(
    fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.crashed = ["workers-0"]

    assert fakes.run("preview") == 0

    assert "machine workers-0 is stopped" in capsys.readouterr().err


@pytest.mark.integration
def test_a_closed_pipe_ends_status_silently(fakes: Fakes) -> None:
    code = (
        "import sys; import local.__main__ as m; import local.mycloud.site as s; "
        "s.render = lambda *_: 'line\\n' * 100_000;"
        f"sys.exit(m.main(['status', '--state', {str(fakes.state)!r}]))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_state_folder_of_another_user_is_an_error_of_one_line(
    fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: Site) -> None:
        raise PermissionError(13, "Permission denied", "/root/x/site.json")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Site, "status", refuse)
        assert fakes.run("status") == 1

    assert capsys.readouterr().err == "error: [Errno 13] Permission denied: '/root/x/site.json'\n"


def test_no_other_user_may_change_the_state_whatever_the_umask(fakes: Fakes) -> None:
    os.umask(0)

    assert fakes.run("up") == 0

    assert [each for each in (fakes.state, *fakes.state.rglob("*")) if each.stat().st_mode & 0o077] == []


def test_a_failed_run_of_the_cli_is_a_failed_up_with_its_exit_code(fakes: Fakes) -> None:
    fakes.code = 7

    assert fakes.run("up") == 7


def test_preview_and_refresh_run_the_cli_and_pass_json_on(fakes: Fakes) -> None:
    assert fakes.run("preview", "--json") == 0
    assert "--json" in fakes.options
    assert fakes.run("refresh") == 0

    assert fakes.calls == ["up", "pulumi preview", "up", "pulumi refresh"]


def test_down_destroys_the_stack_and_then_the_site(fakes: Fakes) -> None:
    fakes.run("up")
    fakes.pretend_state()
    fakes.calls.clear()

    assert fakes.run("down") == 0

    assert fakes.calls == ["up", "end simulated", "pulumi destroy", "down False"]
    assert fakes.delete_unmanaged is None


@pytest.mark.parametrize("command", ["up", "refresh", "down"])
def test_a_second_run_of_a_stack_fails_at_once_and_names_the_first(
    fakes: Fakes, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """It must not wait silently for the first run to finish."""
    fakes.run("up")
    fakes.pretend_state()
    fakes.calls.clear()

    with fakes.locked():
        assert fakes.run(command) == 1

    assert f"error: another run is changing stack local (process {os.getpid()} on " in capsys.readouterr().err
    assert fakes.calls == []


def test_a_preview_is_shown_while_another_run_changes_the_stack(fakes: Fakes) -> None:
    fakes.run("up")

    with fakes.locked():
        assert fakes.run("preview") == 0


def test_down_starts_the_machines_that_crashed_and_waits_for_them_before_it_destroys(
    fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.run("up")
    fakes.pretend_state()
    fakes.calls.clear()
    fakes.crashed = ["control-plane-0"]

    assert fakes.run("down") == 0

    assert fakes.calls[:5] == ["up", "wait", "boot", "wait", "end simulated"]
    assert "machine control-plane-0 is stopped" in (told := capsys.readouterr().err)
    assert "starting it again" in told


def test_down_passes_on_the_request_to_delete_undeclared_objects(fakes: Fakes) -> None:
    fakes.run("up")
    fakes.pretend_state()

    assert fakes.run("down", "--delete-unmanaged") == 0

    assert DELETE_UNMANAGED == cluster_end.DELETE_UNMANAGED
    assert fakes.delete_unmanaged == "true"
    assert DELETE_UNMANAGED not in os.environ


def test_down_keeps_the_data_of_a_site_with_volumes_until_it_is_repeated(
    fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.run("up")
    fakes.status |= {"load_balancers": [], "volumes": [{"id": "vol-1", "name": "kept"}]}
    fakes.calls.clear()

    assert fakes.run("down") == 0
    assert "left: volume vol-1 (kept);" in capsys.readouterr().err
    fakes.status["up"] = False
    assert fakes.run("down") == 0

    assert fakes.calls == ["down True", "down False"]


def test_down_keeps_the_data_of_a_site_where_a_destroy_has_left_clusters_and_addresses(
    fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.run("up")
    fakes.status["clusters"] = [{"id": "c-1", "name": "prod"}]
    fakes.calls.clear()

    assert fakes.run("down") == 0

    assert fakes.calls == ["down True"]
    assert "left: cluster c-1 (prod), load balancer lb-1 (web);" in capsys.readouterr().err


def test_other_options_are_passed_to_the_cli(fakes: Fakes) -> None:
    target = "urn:pulumi:local::p::t:m:T::*"
    assert fakes.run("preview", "--target", target, "--refresh", "--diff") == 0
    assert fakes.options[:4] == ["--diff", "--target", target, "--refresh"]


def test_an_option_that_the_cli_does_not_know_starts_nothing(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    assert fakes.run("up", "--targt", "x") == 2

    assert capsys.readouterr().err == "error: unknown flag: --targt\n"
    assert fakes.calls == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "--target", "x"],
        ["up", "-s", "../x"],
        ["up", "--delete-unmanaged"],
    ],
)
def test_an_option_of_another_command_is_code_2_before_anything_is_started(
    fakes: Fakes, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        fakes.run(*arguments)
    [line] = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and line.endswith("--help)") and not fakes.calls


def test_a_targeted_down_leaves_the_site_and_its_machines(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    fakes.pretend_state()
    assert fakes.run("down", "--target", "urn:pulumi:local::p::t:m:T::x") == 0
    assert fakes.calls == ["up", "pulumi destroy"]
    assert "the stack still has resources" in capsys.readouterr().err


def test_when_two_stacks_go_down_concurrently_the_second_ends_the_site(fakes: Fakes) -> None:
    fakes.run("up")
    fakes.pretend_state()
    fakes.pretend_state("other")
    fakes.during_the_run = lambda: shutil.rmtree(fakes.state / "stacks" / "other")

    assert fakes.run("down") == 0

    assert fakes.calls[-1] == "down False"


def test_the_first_preview_names_what_it_leaves_running(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    assert fakes.run("preview") == 0
    assert "`down` stops them" in capsys.readouterr().err

    assert fakes.run("preview") == 0
    assert "`down` stops them" not in capsys.readouterr().err


def test_down_leaves_the_site_where_the_destroy_failed_or_another_stack_lives(fakes: Fakes) -> None:
    fakes.run("up")
    fakes.pretend_state()
    fakes.pretend_state("other")
    fakes.code = 1
    assert fakes.run("down") == 1

    fakes.code = 0
    assert fakes.run("down") == 0

    assert not {"down False", "end simulated"} & {*fakes.calls}


def test_a_stack_that_is_only_recorded_keeps_no_site_running(fakes: Fakes) -> None:
    fakes.run("up")
    fakes.pretend_state()
    fakes.pretend_state("aws-prod", recorded=True)

    assert fakes.run("down") == 0

    assert fakes.calls[-1] == "down False"


def test_down_without_a_site_does_nothing_and_succeeds(fakes: Fakes) -> None:
    assert fakes.run("down") == 0

    assert fakes.calls == []


def test_stop_keeps_the_data(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    fakes.run("up")
    fakes.calls.clear()

    assert fakes.run("stop") == 0

    assert fakes.calls == ["down True"]
    assert "`up` starts it again" in capsys.readouterr().err


def test_stop_without_a_site_does_not_claim_to_have_stopped_one(
    fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fakes.run("stop") == 0

    assert "there is no site" in capsys.readouterr().err


def test_status_is_for_people_or_json_with_the_stacks_outputs(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    fakes.pretend_state()

    assert fakes.run("status") == 0
    text = capsys.readouterr().out
    assert fakes.run("status", "--json") == 0
    document = json.loads(capsys.readouterr().out)

    assert "1 of 1 backends healthy, 1 unchecked" in text
    assert "http://127.35.0.10:8080/" in text
    assert document["outputs"] == {"webUrl": "http://127.35.0.10:8080/"}
    assert document["load_balancers"] == STATUS["load_balancers"]


@pytest.mark.parametrize("command", ["up", "preview"])
def test_a_misspelt_key_is_named_with_the_original_stack_file_and_nothing_is_started(
    fakes: Fakes, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    fakes.stack_file.write_text("config:\n  cloud-controller:cloud: mycloud\n  cloud-controller:clout: mycloud\n")

    assert fakes.run(command) == 2

    known = "unknown config key 'cloud-controller:clout'; did you mean 'cloud-controller:cloud'?"
    assert capsys.readouterr().err == f"error: {fakes.stack_file}:3: {known}\n"
    assert fakes.calls == []


@pytest.mark.parametrize("namespace", ["", "cloud-controller:"])
def test_a_stack_on_an_account_needs_no_site_whichever_way_its_keys_are_written(tmp_path: Path, namespace: str) -> None:
    (file := tmp_path / "Pulumi.x.yaml").write_text(f"config:\n  {namespace}cloud: aws\n  {namespace}aws: {{}}\n")

    assert is_recorded(file)


@pytest.mark.parametrize(("key", "value"), [("mycloudToken", "abc"), ("mycloudControllerToken", "{a: abc}")])
def test_a_secret_in_plain_text_is_refused_although_the_site_has_its_own(
    fakes: Fakes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, key: str, value: str
) -> None:
    fakes.stack_file.write_text(f"config:\n  cloud-controller:cloud: mycloud\n  cloud-controller:{key}: {value}\n")
    monkeypatch.chdir(fakes.stack_file.parents[1])

    assert fakes.run("up") == 2

    remedy = f'encrypt it with `make pulumi STACK=local ARGS="config set --secret {key}"`'
    told = f"error: {fakes.stack_file}:3: cloud-controller:{key} is in plain text; {remedy}\n"
    assert capsys.readouterr().err == told
    assert fakes.calls == []


def test_a_stack_of_another_cloud_cannot_run_on_a_local_site(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    fakes.stack_file.write_text("config:\n  cloud-controller:cloud: nimbus\n")

    assert fakes.run("up") == 2

    allowed = ", ".join(CLOUDS.names())
    told = f'{fakes.stack_file}:2: cloud-controller:cloud is "nimbus"; allowed: {allowed}\n'
    assert capsys.readouterr().err == f"error: {told}"
    assert fakes.calls == []


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda file: file.mkdir(), "cannot be read: Is a directory"),
        (lambda file: file.write_bytes(b"\xff\xfe"), "is not UTF-8 text"),
        (lambda file: file.write_text("config:\n\tcloud: mycloud\n"), "not valid YAML (line 2): indent with spaces"),
        (lambda file: file.write_text("config:\n  cloud: mycloud\n  cloud: aws\n"), "duplicate key, also in line 2"),
    ],
)
def test_a_stack_file_that_cannot_be_read_is_one_line(
    fakes: Fakes, capsys: pytest.CaptureFixture[str], spoil: Any, why: str
) -> None:
    fakes.stack_file.unlink()
    spoil(fakes.stack_file)

    assert fakes.run("up") == 2

    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {fakes.stack_file} ") and why in line


def test_a_key_of_the_stack_file_needs_no_namespace(fakes: Fakes) -> None:
    fakes.stack_file.write_text("config:\n  cloud: mycloud\n")

    assert fakes.run("up") == 0

    copy = yaml.safe_load((fakes.state / "stacks" / "local" / "Pulumi.local.yaml").read_text())
    assert copy["config"]["cloud-controller:cloud"] == "mycloud"


def test_down_of_a_missing_stack_is_an_error_with_the_existing_ones(
    fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.run("up")

    assert fakes.run("down", "--stack", "lcal") == 2

    assert "stack 'lcal' does not exist" in capsys.readouterr().err and "pulumi destroy" not in fakes.calls


def test_up_shows_try_commands_only_for_the_stacks_own_load_balancers(
    fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {**STATUS["load_balancers"][0], "clusters": ["c-2"], "address": "127.35.0.11", "name": "web"}
    fakes.status["load_balancers"] = [*STATUS["load_balancers"], other]
    fakes.pretend_state(outputs={"clusterId": "c-2"})

    assert fakes.run("up") == 0

    out = capsys.readouterr().out
    assert "http://127.35.0.11:8080/" in out and "127.35.0.10" not in out


@pytest.mark.parametrize("arguments", [[], ["explode"], ["status", "--nope"]])
def test_invalid_arguments_exit_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        command_line.main(arguments)

    assert raised.value.code == 2


# ---------------------------------------------------------------------------------------------------- the stack's copy


def site_of(token: str) -> SiteConfig:
    return SiteConfig({"cloud-controller:mycloud": {"endpoint": ENDPOINT}}, {"cloud-controller:mycloudToken": token})


def test_the_copy_adds_endpoint_and_encrypted_token_and_keeps_the_rest(fakes: Fakes, tmp_path: Path) -> None:
    copy = write_stack_copy(fakes.stack_file, tmp_path / "dir", site_of("the-token"))

    text = copy.read_text()
    stack = yaml.safe_load(text)
    passphrase = (tmp_path / "dir" / "passphrase").read_text().strip()
    token = stack["config"]["cloud-controller:mycloudToken"]["secure"]
    assert "the-token" not in text
    assert stack["config"]["cloud-controller:cloud"] == "mycloud"
    assert stack["config"]["cloud-controller:mycloud"] == {"endpoint": ENDPOINT}
    assert open_crypter(passphrase, stack["encryptionsalt"]).decrypt(token) == "the-token"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "dir" / "passphrase").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("cluster", "given"), [(None, "10.0.0.0/16"), ("new", "10.0.0.0/16"), ("existing", None)])
def test_a_stack_on_an_existing_cluster_gets_nothing_for_a_new_one(
    fakes: Fakes, tmp_path: Path, cluster: str | None, given: str | None
) -> None:
    file = yaml.safe_load(fakes.stack_file.read_text())
    file["config"] |= {"cloud-controller:cluster": cluster} if cluster else {}
    fakes.stack_file.write_text(yaml.safe_dump(file))
    section = "cloud-controller:mycloud"
    site = SiteConfig({section: {"endpoint": ENDPOINT}}, {}, {section: {"cidr": "10.0.0.0/16"}})

    copy = yaml.safe_load(write_stack_copy(fakes.stack_file, tmp_path / "dir", site).read_text())["config"][section]

    assert copy["endpoint"] == ENDPOINT
    assert copy.get("cidr") == given


def test_a_site_may_give_a_stack_the_existing_cluster_that_it_made(fakes: Fakes, tmp_path: Path) -> None:
    fakes.stack_file.write_text("config:\n  cloud: mycloud\n  cluster: existing\n  clusterName: c\n")
    ids = {"clusterId": "c-1", "networkId": "net-1", "podCidr": "10.20.0.0/16", "machines": ["a", "b"]}
    site = SiteConfig({"cloud-controller:existing": ids}, {"cloud-controller:kubeconfig": "the-kubeconfig"})
    check_stack_file(fakes.stack_file)

    text = write_stack_copy(fakes.stack_file, tmp_path / "dir", site).read_text()

    config = yaml.safe_load(text)["config"]
    assert config["cloud-controller:existing"] == ids
    assert config["cloud-controller:kubeconfig"]["secure"] and "the-kubeconfig" not in text


def test_a_stack_file_that_pulumis_cli_wrote_again_needs_no_passphrase(fakes: Fakes, tmp_path: Path) -> None:
    file = yaml.safe_load(fakes.stack_file.read_text())
    file["config"] |= {
        "cloud-controller:workloads": "true",
        "cloud-controller:mycloud": '{"tokenExpires": "2030-01-01"}',
    }
    fakes.stack_file.write_text(yaml.safe_dump({**file, "encryptionsalt": new_crypter("of pulumi stack init").salt}))
    check_stack_file(fakes.stack_file)

    copy = yaml.safe_load(write_stack_copy(fakes.stack_file, tmp_path / "dir", site_of("a")).read_text())

    assert copy["config"]["cloud-controller:workloads"] == "true"
    assert copy["config"]["cloud-controller:mycloud"] == {"tokenExpires": "2030-01-01", "endpoint": ENDPOINT}


def test_the_salt_of_a_stack_file_with_secrets_is_kept(
    fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of the secrets")
    crypter = new_crypter("of the secrets")
    file = yaml.safe_load(fakes.stack_file.read_text())
    file["config"]["other:keys"] = [{"key": {"secure": crypter.encrypt("a")}}]
    fakes.stack_file.write_text(yaml.safe_dump({**file, "encryptionsalt": crypter.salt}))

    copy = yaml.safe_load(write_stack_copy(fakes.stack_file, tmp_path / "dir", site_of("a")).read_text())

    assert copy["encryptionsalt"] == crypter.salt


def test_a_second_copy_keeps_salt_and_passphrase(fakes: Fakes, tmp_path: Path) -> None:
    first = yaml.safe_load(write_stack_copy(fakes.stack_file, tmp_path / "dir", site_of("a")).read_text())
    second = yaml.safe_load(write_stack_copy(fakes.stack_file, tmp_path / "dir", site_of("b")).read_text())

    assert first["encryptionsalt"] == second["encryptionsalt"]


def test_two_first_runs_at_once_agree_on_one_passphrase(
    fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_is_derived, make = threading.Event(), new_crypter

    def slowly(passphrase: str) -> PassphraseCrypter:
        key_is_derived.wait(0.5)  # the other run would intervene here without the lock
        key_is_derived.set()
        return make(passphrase)

    monkeypatch.setattr(stack_copy, "new_crypter", slowly)
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(write_stack_copy, fakes.stack_file, tmp_path / "dir", site_of("a")) for _ in range(2)]
        stacks = [yaml.safe_load(run.result().read_text()) for run in runs]

    passphrase = (tmp_path / "dir" / "passphrase").read_text().strip()
    assert all(open_crypter(passphrase, stack["encryptionsalt"]) for stack in stacks)


def test_a_passphrase_in_the_environment_is_used_and_a_wrong_one_detected(
    fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "right")
    write_stack_copy(fakes.stack_file, tmp_path / "dir", site_of("a"))
    assert not (tmp_path / "dir" / "passphrase").exists()

    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "wrong")

    with pytest.raises(
        SecretsError, match=r"dir/Pulumi\.dir\.yaml: .* does not match .* from PULUMI_CONFIG_PASSPHRASE:"
    ):
        write_stack_copy(fakes.stack_file, tmp_path / "dir", site_of("a"))


def test_a_lost_passphrase_is_an_error_that_names_its_file(fakes: Fakes, tmp_path: Path) -> None:
    write_stack_copy(fakes.stack_file, tmp_path / "dir", site_of("a"))
    (tmp_path / "dir" / "passphrase").unlink()

    with pytest.raises(SecretsError, match="PULUMI_CONFIG_PASSPHRASE"):
        write_stack_copy(fakes.stack_file, tmp_path / "dir", site_of("a"))


@pytest.mark.parametrize("text", ["config: [", "config: {}", ""])
def test_a_damaged_copy_is_rewritten(fakes: Fakes, tmp_path: Path, text: str) -> None:
    copy = write_stack_copy(fakes.stack_file, tmp_path / "dir", site_of("a"))
    copy.write_text(text)

    stack = yaml.safe_load(write_stack_copy(fakes.stack_file, tmp_path / "dir", site_of("a")).read_text())

    passphrase = (tmp_path / "dir" / "passphrase").read_text().strip()
    secure = stack["config"]["cloud-controller:mycloudToken"]["secure"]
    assert open_crypter(passphrase, stack["encryptionsalt"]).decrypt(secure) == "a"


@pytest.mark.parametrize("text", ["config: [", "config: 3", "other: {}", ""])
def test_a_malformed_stack_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    source = tmp_path / "Pulumi.local.yaml"
    source.write_text(text)

    with pytest.raises(StackFileError, match=r"Pulumi\.local\.yaml"):
        read_stack_file(source)


# ------------------------------------------------------------------------------------------------------ status as text


def test_the_status_reports_a_site_that_is_not_up() -> None:
    assert render({"state_folder": "/x", "up": False}, {}) == "There is no site in /x."


MACHINE: dict[str, Any] = {
    "id": "i-1",
    "name": "worker-0",
    "state": "running",
    "state_reason": None,
    "private_ips": ["10.33.0.10"],
    "zone": "zone-a",
    "type": "m1.small",
    "role": "worker",
    "simulated": False,
}


def test_simulated_and_terminated_machines_are_counted_in_the_status_not_listed() -> None:
    simulated, ended = {**MACHINE, "simulated": True}, {**MACHINE, "state": "terminated"}
    machines = [MACHINE, simulated, {**ended, "simulated": True}, ended]

    lines = render({**STATUS, "machines": machines}, {}).splitlines()

    title = lines.index("machines, beside 1 simulated and 1 terminated")
    assert lines[title + 1 : title + 3] == ["  worker-0  running  i-1  10.33.0.10  zone-a  m1.small  worker", ""]


def test_a_volume_is_shown_with_the_machine_that_has_it() -> None:
    attached = {"machine_id": "i-1", "state": "attached"}
    common = {"state": "available", "state_reason": None, "size_gib": 10, "zone": "zone-a"}
    volumes = [
        {"id": "vol-1", "name": "data", "attachment": attached, **common},
        {"id": "vol-2", "name": "spare", "attachment": None, **common},
    ]

    lines = render({**STATUS, "machines": [MACHINE], "volumes": volumes}, {}).splitlines()

    assert [line.split() for line in lines if "vol-" in line] == [
        ["data", "available", "vol-1", "10", "GiB", "zone-a", "attached:", "worker-0"],
        ["spare", "available", "vol-2", "10", "GiB", "zone-a", "not", "attached"],
    ]


def test_the_status_shows_the_reason_beside_an_objects_state() -> None:
    balancer = {**STATUS["load_balancers"][0], "state": "failed", "state_reason": "in use", "backends": None}

    text = render({**STATUS, "up": False, "load_balancers": [balancer]}, {})

    assert "does not answer" in text
    assert "failed: in use" in text
    assert "health unknown" in text


def test_try_commands_do_not_use_a_proxy() -> None:
    assert addresses(STATUS["load_balancers"], proxied=True)["web"][0] == "curl --noproxy '*' http://127.35.0.10:8080/"


@pytest.mark.integration
def test_the_try_command_for_udp_shows_the_answer() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as server, ThreadPoolExecutor(1) as pool:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        listeners = [{"protocol": "UDP", "port": server.getsockname()[1]}]
        (command,) = addresses([{"name": "echo", "address": "127.0.0.1", "listeners": listeners}])["echo"]
        shown = pool.submit(subprocess.check_output, command, shell=True, text=True)
        packet, client = server.recvfrom(100)
        server.sendto(packet.upper(), client)
        assert shown.result() == "HELLO\n"
