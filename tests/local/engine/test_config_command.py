"""`config set|get|rm` of the embedded engine: what they write, print and refuse."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml

from local.engine.cli import main
from local.engine.stack.secrets import open_crypter
from tests.local.engine.recordings import PASSPHRASE, SALT

SECRET = "hunter2-of-the-config"


class Stack:
    """The command line on a project `shop` with stack `dev`."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.monkeypatch = monkeypatch
        self.file = directory / "stacks/Pulumi.dev.yaml"
        (directory / "Pulumi.yaml").write_text("name: shop\nruntime: python\nstackConfigDir: stacks\n")

    def config(self, *arguments: str, stdin: str | None = None) -> tuple[int, str]:
        if stdin is not None:
            self.monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        out = io.StringIO()
        return main(["config", *arguments, "--stack", "dev", "--cwd", str(self.directory)], out), out.getvalue()

    def set(self, *arguments: str, stdin: str | None = None) -> None:
        assert self.config("set", *arguments, stdin=stdin) == (0, "")

    @property
    def values(self) -> dict[str, object]:
        config: dict[str, object] = yaml.safe_load(self.file.read_text())["config"]
        return config


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    return Stack(tmp_path, monkeypatch)


def salted(stack: Stack, text: str = "") -> None:
    stack.file.parent.mkdir()
    stack.file.write_text(f"encryptionsalt: {SALT}\n{text}")


def test_a_first_value_creates_the_stack_file(stack: Stack) -> None:
    stack.set("name", "web")

    assert stack.file.read_text() == "config:\n  shop:name: web\n"


def test_a_value_is_kept_as_text_under_its_full_key(stack: Stack) -> None:
    stack.set("count", "5")
    stack.set("aws:region", "here")

    assert stack.values == {"shop:count": "5", "aws:region": "here"}


def test_a_key_without_its_namespace_in_the_file_is_not_duplicated(stack: Stack) -> None:
    salted(stack, "config:\n  name: a\n")

    stack.set("name", "b")

    assert stack.values == {"name": "b"}


def test_a_secret_is_read_from_standard_input_and_stored_encrypted(stack: Stack) -> None:
    salted(stack)

    stack.set("--secret", "token", stdin=f"{SECRET}\n")

    [ciphertext] = dict(stack.values["shop:token"]).values()  # type: ignore[call-overload]
    assert open_crypter(PASSPHRASE, SALT).decrypt(ciphertext) == SECRET
    assert SECRET not in stack.file.read_text()


def test_a_first_secret_makes_a_salt_and_a_passphrase(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")

    stack.set("--secret", "token", SECRET)

    assert (stack.directory / ".state/stacks/dev/passphrase").exists()
    assert stack.config("get", "token") == (0, f"{SECRET}\n")


def test_a_secret_is_prompted_for_on_a_terminal_without_echo(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    salted(stack)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda prompt: SECRET if prompt == "value: " else "")

    stack.set("--secret", "token")

    assert stack.config("get", "token") == (0, f"{SECRET}\n")


class Terminal:
    """A terminal on standard input, at which that key is pressed."""

    def __init__(self, stack: Stack, pressed: type[BaseException]) -> None:
        def ask(_: str) -> str:
            raise pressed

        stack.monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        for asking in ("getpass.getpass", "builtins.input"):
            stack.monkeypatch.setattr(asking, ask)


@pytest.mark.parametrize("options", [[], ["--secret"]])
def test_the_end_of_the_input_at_the_prompt_gives_no_value(
    stack: Stack, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    Terminal(stack, EOFError)

    assert stack.config("set", "name", *options) == (1, "")

    assert capsys.readouterr().err == "\nerror: no value given\n"
    assert not stack.file.exists()


def test_a_closed_standard_input_gives_no_value(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    stack.monkeypatch.setattr("sys.stdin", None)

    assert stack.config("set", "name") == (1, "")

    assert capsys.readouterr().err == "error: no value given\n"


def test_ctrl_c_at_the_prompt_changes_nothing(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(stack, KeyboardInterrupt)

    assert stack.config("set", "name")[0] == 8

    assert capsys.readouterr().err == "\nerror: interrupted\n"


@pytest.mark.parametrize(
    "key",
    [
        ["mycloudToken"],
        ["aws:secretKey"],
        ["passwd"],
        ["passphrase"],
        ["--path", "db.users[0].PASSWORD"],
        ["declared"],
    ],
)
def test_a_key_named_or_declared_as_a_secret_is_stored_in_plain_text_only_on_request(
    stack: Stack, capsys: pytest.CaptureFixture[str], key: list[str]
) -> None:
    with (stack.directory / "Pulumi.yaml").open("a") as project:
        project.write("config: {declared: {type: string, secret: true}}\n")

    assert stack.config("set", *key, SECRET)[0] == 1

    remedy = "encrypt it with --secret, or store it in plain text with --plaintext"
    assert capsys.readouterr().err == f"error: {key[-1]} looks like a secret: {remedy}\n"
    assert not stack.file.exists()
    stack.set("--plaintext", *key, SECRET)
    assert SECRET in stack.file.read_text()


def test_secret_and_plaintext_exclude_each_other(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        stack.config("set", "--secret", "--plaintext", "token", SECRET)

    told = capsys.readouterr().err
    assert ended.value.code == 2 and "--plaintext: not allowed with argument --secret" in told and SECRET not in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--secret", "token", "correct", "xyzzy"], "unexpected argument after VALUE"),
        (["token", "-xyzzy"], "unknown option; put -- before a VALUE that begins with -"),
        (["token", "--xyzzy"], "unknown option; put -- before a VALUE that begins with -"),
        (["token", "--sercet", "xyzzy"], "unknown option; did you mean --secret?"),
        (["token", "--secret=xyzzy"], "argument --secret: does not take a value"),
    ],
)
def test_an_error_for_invalid_arguments_does_not_quote_the_value(
    stack: Stack, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        stack.config("set", *arguments)

    shown = capsys.readouterr().err
    assert ended.value.code == 2 and f"error: {told} (see " in shown and "xyzzy" not in shown


def test_a_value_with_a_leading_hyphen_follows_two_hyphens(stack: Stack) -> None:
    where = ["--stack", "dev", "--cwd", str(stack.directory)]

    assert main(["config", "set", *where, "name", "--", "-web"], io.StringIO()) == 0

    assert stack.values == {"shop:name": "-web"}


@pytest.mark.parametrize("action", [["set", "name", "web"], ["get", "name"], ["rm", "name"]])
def test_the_stack_option_may_precede_the_action(stack: Stack, action: list[str]) -> None:
    elsewhere = stack.directory / "elsewhere.yaml"
    elsewhere.write_text("config: {shop:name: web}\n")
    where = ["--stack", "dev", "--cwd", str(stack.directory), "--state", "s", "--config-file", str(elsewhere)]

    assert main(["config", *where, *action], io.StringIO()) == 0

    assert not stack.file.exists()
    assert ("shop:name" in elsewhere.read_text()) == (action[0] != "rm")


def test_secrets_without_a_salt_are_an_error_and_nothing_is_written(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    stack.file.parent.mkdir()
    stack.file.write_text("config: {shop:token: {secure: 'v1:a:b'}}\n")

    assert stack.config("get", "token")[0] == 1
    assert stack.config("--show-secrets")[0] == 1

    told = f"error: {stack.file} has secure values but no encryptionsalt: add the one that they were encrypted with"
    assert capsys.readouterr().err.splitlines() == [told, told]
    assert not (stack.directory / ".state").exists()


def test_a_damaged_secret_is_named_with_its_file_and_key(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    salted(stack, "config: {shop:token: {secure: 'v1:a:b'}}\n")

    assert stack.config("get", "token")[0] == 1

    assert capsys.readouterr().err == f"error: {stack.file}: shop:token: the ciphertext is not base64\n"


def test_config_reports_a_wrong_passphrase_with_its_source(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    salted(stack, "config: {shop:token: {secure: 'v1:a:b'}}\n")
    stack.monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "wrong")

    for action in (["get", "token"], ["set", "--secret", "token", SECRET]):
        assert stack.config(*action)[0] == 1
        told = capsys.readouterr().err
        assert (
            f"{stack.file}: the passphrase does not match its secrets; it comes from PULUMI_CONFIG_PASSPHRASE" in told
        )


@pytest.mark.parametrize("action", [[], ["get", "name"], ["set", "name", "web"], ["rm", "name"]])
def test_a_stack_file_that_is_not_text_is_named_and_stays(
    stack: Stack, capsys: pytest.CaptureFixture[str], action: list[str]
) -> None:
    salted(stack)
    stack.file.write_bytes(b"config: {name: \xff}\n")

    assert stack.config(*action)[0] == 1

    assert capsys.readouterr().err == f"error: {stack.file} is not UTF-8 text\n"
    assert stack.file.read_bytes() == b"config: {name: \xff}\n"


def test_a_list_shows_no_secret_and_needs_no_passphrase(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    salted(stack)
    stack.set("--secret", "token", SECRET)
    stack.set("name", "web")
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")

    assert stack.config() == (0, "KEY    VALUE\nname   web\ntoken  [secret]\n")


def test_a_path_reaches_into_maps_and_lists(stack: Stack) -> None:
    stack.set("--path", "cloud.zones[0].name", "a")
    stack.set("--path", "cloud.zones[1].size", "3")
    stack.set("--path", "cloud.code", "007")

    assert stack.values == {"shop:cloud": {"zones": [{"name": "a"}, {"size": 3}], "code": "007"}}
    assert stack.config("get", "--path", "cloud.zones[1].size") == (0, "3\n")
    assert stack.config("rm", "--path", "cloud.zones[0]") == (0, "")
    assert stack.config("get", "cloud") == (0, '{"code":"007","zones":[{"size":3}]}\n')


def test_a_secret_may_stand_within_a_map(stack: Stack) -> None:
    salted(stack)

    stack.set("--secret", "--path", "cloud.token", SECRET)

    assert SECRET not in stack.file.read_text()
    assert stack.config("get", "--path", "cloud.token") == (0, f"{SECRET}\n")
    assert stack.config()[1].endswith("cloud  [secret]\n")


def test_removing_a_key_twice_is_allowed(stack: Stack) -> None:
    stack.set("name", "web")

    assert stack.config("rm", "name") == (0, "")
    assert stack.config("rm", "name") == (0, "")
    assert stack.config("get", "name")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["get", "nmae"], "configuration key 'nmae' not found for stack 'dev'"),
        (["set", ":name", "x"], "invalid configuration key: ':name'; allowed: KEY, NAMESPACE:KEY"),
        (["set", "--path", "name.first", "x"], "first: the value that contains it is not a map"),
        (["set", "--path", "name[0]", "x"], "[0]: the value that contains it is not a list"),
        (["set", "--path", "zones[1]", "x"], "[1]: the list has only 0 items"),
        (["set", "--path", "name..first", "x"], "is not a valid property path"),
    ],
)
def test_an_impossible_config_change_is_one_line(
    stack: Stack, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    salted(stack, "config:\n  shop:name: web\n")

    assert stack.config(*arguments)[0] == 1

    assert told in capsys.readouterr().err
    assert stack.values == {"shop:name": "web"}


def test_listing_the_config_requires_a_stack(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["config", "--cwd", str(stack.directory)])

    assert ended.value.code == 2 and "error: --stack/-s is required" in capsys.readouterr().err
