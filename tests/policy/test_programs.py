"""What command lines run (`policy/programs.py`)."""

from __future__ import annotations

import pytest

from policy.programs import always_succeeds, commands


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["/bin/ccm", "run"], ["ccm"]),
        (["sh", "-c", "exec /bin/ccm --v=2"], ["ccm"]),
        (["/bin/bash", "-lc", "ccm"], ["ccm"]),
        (["busybox", "sh", "-c", "ccm"], ["ccm"]),
        (["sh", "/scripts/start.sh"], ["start"]),
        (["sh", "-c", "until nc -z host 1; do sleep 1; done\nexec ccm"], ["nc", "sleep", "done", "ccm"]),
        (["sh", "-c", "REGION=a ccm # starts it"], ["ccm"]),
        (["sh", "-c", "echo 'open"], ["echo"]),
        (["tini", "--", "/ccm-amd64"], ["ccm"]),
        (["tini", "-e", "143", "--", "ccm"], ["ccm"]),
        (["dumb-init", "ccm"], ["ccm"]),
        (["env", "-i", "REGION=a", "ccm"], ["ccm"]),
        (["timeout", "60", "su-exec", "nobody", "ccm"], ["ccm"]),
        (["python", "-P", "-m", "cloud_controller.cli", "run"], ["cloud-controller", "cli"]),
        (["python3.13", "-X", "dev", "/app/my_ccm.py"], ["my-ccm"]),
        (["python3", "/app/cloud_controller/__main__.py"], ["cloud-controller"]),
        (["python", "-c", "import ccm"], []),
        (["tini", "--", "sh", "-c", "exec python -m ccm"], ["ccm"]),
        (["kubectl", "rollout", "status", "ds/cloud-controller-manager"], ["kubectl"]),
        (["sh"], []),
        ([], []),
    ],
)
def test_the_programs_of_a_command_line_are_found_behind_what_starts_them(words: list[str], names: list[str]) -> None:
    assert [name for each in commands(words) for name in each.names] == names


@pytest.mark.parametrize(
    ("script", "files"),
    [
        ("ccm", ()),
        ("ccm > /var/log/ccm.log 2>&1", ("/var/log/ccm.log",)),
        ("exec ccm >>/var/log/ccm.log", ("/var/log/ccm.log",)),
        ("ccm &> /var/log/ccm.log", ("/var/log/ccm.log",)),
        ("ccm 2>/dev/null", ("/dev/null",)),
        ("ccm 2>&1", ()),
    ],
)
def test_the_files_to_which_a_shell_redirects_output_are_found(script: str, files: tuple[str, ...]) -> None:
    [command] = commands(["sh", "-c", script])

    assert command.files == files


@pytest.mark.parametrize(
    "words",
    [
        ["true"],
        ["/bin/true"],
        ["exit", "0"],
        ["echo", "ok"],
        ["sh", "-c", "true"],
        ["sh", "-c", ":"],
        ["sh", "-c", "exit 0"],
        ["sh", "-c", "sleep 1 && exit 0"],
        ["sh", "-c", "curl -f localhost || true"],
        ["sh", "-c", "curl -f localhost; exit 0"],
    ],
)
def test_a_command_that_cannot_fail_is_recognised(words: list[str]) -> None:
    assert always_succeeds(words)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["curl", "-f", "localhost"],
        ["sh", "-c", "curl -f localhost"],
        ["sh", "-c", "curl -f localhost && true"],
        ["sh", "-c", "curl -f localhost; exit"],
        ["sh", "-c", "curl -f localhost || exit 1; exit 0"],
        ["sh", "-c", "set -e; curl -f localhost; exit 0"],
        ["sh", "-c", "echo checking; curl -f localhost"],
    ],
)
def test_a_command_that_can_fail_is_not_taken_for_one_that_cannot(words: list[str]) -> None:
    assert not always_succeeds(words)
