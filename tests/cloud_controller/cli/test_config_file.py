"""--config FILE: the options in YAML, typed; the line wins; what is wrong is told by file and key."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from cloud_controller.cli import commands as cli
from cloud_controller.cli import options as cli_options
from cloud_controller.cloud import InvalidConfiguration


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def parsed(file: Path, text: str, *more: str, command: str = "run") -> argparse.Namespace:
    file.write_text(text)
    return cli_options.parse(*cli._parsers(), [command, f"--config={file}", *more])


def test_a_config_file_sets_options_of_every_type(file: Path) -> None:
    options = parsed(
        file,
        """
        cloud: mycloud
        cloud-config: /etc/cloud/cloud.conf
        controllers: [node, route]
        cluster-cidr: 10.1.0.0/16
        node-monitor-period: 1m30s
        service-resync-period: 0
        concurrent-node-syncs: 4
        kube-api-qps: 20.5
        leader-elect: false
        logging-format: json
        authorization-always-allow-paths: [/livez, /healthz/*]
        """,
    )

    assert options.cloud == "mycloud"
    assert options.controllers == ["node", "route"]
    assert (options.node_monitor_period, options.service_resync_period) == (90.0, 0.0)
    assert (options.concurrent_node_syncs, options.kube_api_qps) == (4, 20.5)
    assert options.leader_elect is False
    assert options.logging_format == "json"
    assert options.authorization_always_allow_paths == ["/livez", "/healthz/*"]


def test_a_command_line_option_overrides_the_config_file(file: Path) -> None:
    options = parsed(file, "cloud: mycloud\nsecure-port: 1\nbind-address: 127.0.0.2\n", "--secure-port=2")

    assert (options.secure_port, options.bind_address) == (2, "127.0.0.2")


def test_a_config_file_accepts_upstreams_option_names(file: Path) -> None:
    assert parsed(file, "cloud-provider: mycloud\n").cloud == "mycloud"


def test_one_config_file_works_for_all_commands(file: Path) -> None:
    options = parsed(file, "cloud: mycloud\nsecure-port: 1\n", command="plan")

    assert options.cloud == "mycloud"
    assert not hasattr(options, "secure_port")


def test_an_empty_config_file_sets_nothing(file: Path) -> None:
    assert parsed(file, "# nothing\n", "--cloud=mycloud").secure_port == 10258


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("node-monitor-perod: 5s", "line 2: unknown option; did you mean 'node-monitor-period'"),
        ("<<: {xyzzy: 1}", "config.yaml: unknown option$"),
        ("xyzzy: 1", "line 2: unknown option$"),
        ("config: other.yaml", "line 2: unknown option"),
        ("node-monitor-period: 5", r"node-monitor-period: wrong type \(allowed: a duration such as 30s"),
        ("node-monitor-period: soon", "node-monitor-period: not a valid duration"),
        ("leader-elect: 'no'", r"leader-elect: wrong type \(allowed: true or false\)"),
        ("secure-port: '10258'", r"secure-port: wrong type \(allowed: a number\)"),
        ("secure-port: true", "secure-port: wrong type"),
        ("secure-port: 1.5", "secure-port: wrong type"),
        ("secure-port: 70000", "secure-port: not an integer from 0 to 65535"),
        ("cluster-name: 5", "cluster-name: wrong type .*quote it"),
        ("cluster-name:", "cluster-name: wrong type"),
        ("controllers: [1]", r"controllers: wrong type"),
        ("log-level: loud", r"log-level: not an allowed value \(allowed: debug"),
        ("cloud-provider: mycloud", "cloud-provider: duplicate option"),
        ("allocate-node-cidrs: true", "allocate-node-cidrs: not supported: kube-controller-manager"),
        ("webhook-secure-port: 10260", "webhook-secure-port: not supported"),
        ("- a list", "not a mapping of option names"),
        ("5: five", "not a mapping of option names"),
        ("a: [", "not valid YAML"),
        ("secure-port: 1\nsecure-port: 2", "line 3.: duplicate key, also in line 2"),
        ("node-monitor-period: 1ms", "node-monitor-period: not between 10ms and 8760h"),
    ],
)
def test_config_file_errors_name_file_and_key(file: Path, text: str, told: str) -> None:
    text = text if text[0] in "-5a" and not text.startswith("allocate") else f"cloud: mycloud\n{text}"

    with pytest.raises(InvalidConfiguration, match=told) as refused:
        parsed(file, text + "\n")

    assert str(file) in str(refused.value)


def test_a_config_file_accepts_harmless_values_of_upstreams_flags(file: Path) -> None:
    assert parsed(file, "cloud: mycloud\nallocate-node-cidrs: false\nwebhook-secure-port: 0\n").cloud == "mycloud"


def test_a_missing_config_file_is_an_error_that_names_its_path(file: Path) -> None:
    with pytest.raises(FileNotFoundError, match=str(file)):
        cli_options.parse(*cli._parsers(), ["run", f"--config={file}"])


def test_contradicting_options_are_rejected_even_if_one_is_in_the_config_file(file: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="tls-cert-file: requires --tls-private-key-file"):
        parsed(file, "cloud: mycloud\n", "--tls-cert-file=/x")
    with pytest.raises(InvalidConfiguration, match="v: conflicts with --log-level"):
        parsed(file, "cloud: mycloud\nlog-level: info\n", "--v=2")
