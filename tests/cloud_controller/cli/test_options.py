"""The daemon's flags: upstream's names and defaults, what is refused and what it says, what contradicts itself."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

import pytest

from cloud_controller.cli import commands as cli
from cloud_controller.cli import options as cli_options
from cloud_controller.cli import upstream as cli_upstream
from cloud_controller.cloud import InvalidConfiguration

# A manifest of the upstream cloud controller manager (seed 002 §8.1), without what is refused.
UPSTREAM = [
    "--cloud-provider=mycloud",
    "--cloud-config=/etc/kubernetes/cloud.conf",
    "--leader-elect=true",
    "--leader-elect-lease-duration=15s",
    "--leader-elect-renew-deadline=10s",
    "--leader-elect-retry-period=2s",
    "--leader-elect-resource-name=cloud-controller-manager",
    "--leader-elect-resource-namespace=kube-system",
    "--controllers=*",
    "--configure-cloud-routes=true",
    "--allocate-node-cidrs=false",
    "--cluster-cidr=10.244.0.0/16",
    "--cluster-name=production",
    "--concurrent-service-syncs=5",
    "--node-monitor-period=5s",
    "--route-reconciliation-period=10s",
    "--bind-address=127.0.0.1",
    "--secure-port=10258",
    "--v=2",
    "--logging-format=json",
]


def options(*arguments: str, command: str = "run") -> argparse.Namespace:
    return cli_options.parse(*cli._parsers(), [command, *arguments])


def usage_error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        options("--cloud=mycloud", *arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_a_cluster_cidr_with_host_bits_is_truncated_with_a_warning_as_upstream_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = options("--cloud=mycloud", "--cluster-cidr=10.244.7.9/16,fd00::7/48")

    settings = cli_options.manager_options(given)

    assert settings.route is not None
    assert settings.route.cluster_cidrs == ("10.244.0.0/16", "fd00::/48")
    assert settings.service.pod_ranges == ("10.244.0.0/16", "fd00::/48")
    assert [record.message for record in caplog.records] == [
        "--cluster-cidr=10.244.7.9/16 has host bits set; using 10.244.0.0/16",
        "--cluster-cidr=fd00::7/48 has host bits set; using fd00::/48",
    ]


def test_a_cluster_cidr_without_host_bits_gives_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    cli_options.manager_options(options("--cloud=mycloud", "--cluster-cidr=10.244.0.0/16"))

    assert caplog.records == []


def test_the_flags_of_an_upstream_manifest_are_accepted() -> None:
    settings = cli_options.manager_options(options(*UPSTREAM))

    assert settings.controllers == ("node", "node-lifecycle", "service", "route", "volume")
    assert settings.service.workers == 5
    assert settings.serving is not None
    assert settings.serving.port == 10258


@pytest.mark.parametrize(
    ("arguments", "workers"),
    [
        (["--cloud=mycloud"], 3),
        (["--cloud=alicloud"], 20),
        (["--cloud=alicloud", "--concurrent-service-syncs=5"], 5),
    ],
)
def test_how_many_services_are_reconciled_at_once_is_the_clouds_default_or_the_options(
    arguments: list[str], workers: int
) -> None:
    found = cli_options.manager_options(options(*arguments, "--cluster-cidr=10.244.0.0/16"))

    assert found.service.workers == workers


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("secure_port", 10258),
        ("node_monitor_period", 5.0),
        ("node_status_update_frequency", 300.0),
        ("leader_elect", True),
        ("leader_elect_lease_duration", 15.0),
        ("leader_elect_renew_deadline", 10.0),
        ("leader_elect_retry_period", 2.0),
        ("leader_elect_resource_name", "cloud-controller-manager"),
        ("leader_elect_resource_namespace", "kube-system"),
        ("controllers", ["*"]),
        ("configure_cloud_routes", True),
        ("cluster_name", "kubernetes"),
        ("concurrent_node_status_updates", 0),
        ("authorization_always_allow_paths", ["/healthz", "/readyz", "/livez"]),
        ("logging_format", "text"),
    ],
)
def test_flag_defaults_equal_upstreams(flag: str, value: object) -> None:
    assert getattr(options("--cloud=mycloud"), flag) == value


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("--allocate-node-cidrs=true", "kube-controller-manager allocates node CIDRs"),
        ("--allocate-node-cidrs", "kube-controller-manager allocates node CIDRs"),
        ("--cidr-allocator-type=RangeAllocator", "kube-controller-manager allocates node CIDRs"),
        ("--use-service-account-credentials=true", "all controllers share one identity"),
        ("--enable-leader-migration", "stop the old manager's controllers"),
        ("--leader-migration-config=/x", "stop the old manager's controllers"),
        ("--webhook-secure-port=10260", "serves no webhooks"),
        ("--min-resync-period=12h", "--service-resync-period"),
        ("--master=http://x", "--kubeconfig"),
        ("--client-ca-file=/x", "TokenReview"),
        ("--profiling=true", "there is no profiling endpoint"),
    ],
)
def test_an_unsupported_upstream_flag_is_an_error_with_advice(
    capsys: pytest.CaptureFixture[str], argument: str, told: str
) -> None:
    line = usage_error(capsys, argument)

    assert line.startswith(f"cloud-controller run: error: argument {argument.partition('=')[0]}: not supported")
    assert told in line


@pytest.mark.parametrize("flag", [flag for flag, (harmless, _) in cli_upstream.FLAGS.items() if harmless])
def test_a_harmless_value_of_an_unsupported_upstream_flag_is_accepted(flag: str) -> None:
    for value in cli_upstream.FLAGS[flag][0]:
        options("--cloud=mycloud", f"--{flag}={value}")


@pytest.mark.parametrize(
    ("argument", "nearest"),
    [("--leader-elct=true", "--leader-elect"), ("--secure-prot=1", "--secure-port"), ("--dryrun", "--dry-run")],
)
def test_an_unknown_flag_is_an_error_with_the_nearest_name(
    capsys: pytest.CaptureFixture[str], argument: str, nearest: str
) -> None:
    name = argument.partition("=")[0]
    assert f"unknown option {name}; did you mean {nearest}?" in usage_error(capsys, argument)


def test_flags_cannot_be_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown option --secure" in usage_error(capsys, "--secure=1")


@pytest.mark.parametrize(
    "argument",
    [
        "--leader-elect-resource-name=Cloud_Controller",
        "--leader-elect-resource-name=",
        "--leader-elect-resource-name=a..b",
        f"--leader-elect-resource-name={'a' * 254}",
        "--leader-elect-resource-namespace=kube.system",
    ],
)
def test_an_invalid_lease_name_is_a_usage_error(capsys: pytest.CaptureFixture[str], argument: str) -> None:
    assert argument.partition("=")[0] in usage_error(capsys, argument)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--tls-cert-file=/x"], "tls-cert-file: requires --tls-private-key-file"),
        (["--tls-private-key-file=/x"], "tls-private-key-file: requires --tls-cert-file"),
        (["--tls-cert-file=/x", "--tls-private-key-file=/y", "--secure-port=0"], "serves nothing"),
        (["--context=c"], "context: requires --kubeconfig"),
        (["--kube-api-burst=5"], "kube-api-burst: requires --kube-api-qps"),
        (["--v=2", "--log-level=info"], "v: conflicts with --log-level"),
        (["--delete-foreign-routes", "--configure-cloud-routes=false"], "requires controller route"),
    ],
)
def test_contradicting_flags_are_rejected(arguments: list[str], told: str) -> None:
    with pytest.raises(InvalidConfiguration, match=told):
        options("--cloud=mycloud", *arguments)


def test_an_apply_with_json_output_requires_yes() -> None:
    with pytest.raises(InvalidConfiguration, match=r"output: json does not show a plan to approve \(.*json with --yes"):
        options("--cloud=mycloud", "--output=json", command="apply")

    assert options("--cloud=mycloud", "--output=json", "--yes", command="apply").yes


@pytest.mark.parametrize("time", ["0.001ms", "9ms", "8761h", "99999999999999999h"])
@pytest.mark.parametrize("flag", ["node-monitor-period", "service-resync-period"])
def test_a_duration_that_is_too_short_or_too_long_is_rejected(
    capsys: pytest.CaptureFixture[str], flag: str, time: str
) -> None:
    assert f"argument --{flag}: not between 10ms and 8760h" in usage_error(capsys, f"--{flag}={time}")


def test_the_cloud_option_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        options()

    assert ended.value.code == 2
    assert "--cloud is required" in capsys.readouterr().err


def test_upstreams_flag_disables_the_route_controller() -> None:
    found = cli_options.manager_options(options("--cloud=mycloud", "--configure-cloud-routes=false"))

    assert "route" not in found.controllers
    assert found.route is None


def test_a_star_leaves_out_route_if_the_cloud_does_not_support_routes() -> None:
    found = cli_options.manager_options(options("--cloud=mycloud"), {"route"})

    assert "route" not in found.controllers
    assert found.route is None


def test_naming_controller_route_conflicts_with_disabling_cloud_routes() -> None:
    with pytest.raises(
        InvalidConfiguration, match="configure-cloud-routes: false conflicts with --controllers, which names route"
    ):
        cli_options.manager_options(
            options("--cloud=mycloud", "--configure-cloud-routes=false", "--controllers=node,route")
        )


@pytest.mark.parametrize(
    ("arguments", "level"),
    [([], "info"), (["--v=3"], "info"), (["-v", "4"], "debug"), (["--log-level=error"], "error")],
)
def test_klog_verbosity_sets_the_log_level(arguments: list[str], level: str) -> None:
    assert cli_options.log_level(options("--cloud=mycloud", *arguments)) == level


@pytest.mark.parametrize(("address", "protected"), [("127.0.0.1", False), ("::1", False), ("10.0.0.1", True)])
def test_metrics_require_authorization_only_beyond_loopback(address: str, protected: bool) -> None:
    found = cli_options.manager_options(
        options("--cloud=mycloud", "--controllers=node", f"--bind-address={address}")
    ).serving

    assert found is not None
    assert found.protected is protected


@pytest.mark.parametrize(("given", "open_paths"), [("", []), ("/healthz, /x/*", ["/healthz", "/x/*"]), ("/*", ["/*"])])
def test_always_allowed_paths_are_those_of_the_option(given: str, open_paths: list[str]) -> None:
    found = options("--cloud=mycloud", f"--authorization-always-allow-paths={given}")

    assert found.authorization_always_allow_paths == open_paths


@pytest.mark.parametrize("path", ["/", "metrics", "/healthz/", "//", "/a*"])
def test_an_always_allowed_path_that_would_open_more_than_it_names_is_rejected(
    capsys: pytest.CaptureFixture[str], path: str
) -> None:
    line = usage_error(capsys, f"--authorization-always-allow-paths={path}")

    assert "not a path such as /healthz" in line


def test_status_updates_use_the_workers_of_node_syncs_by_default() -> None:
    common = ["--cloud=mycloud", "--controllers=node", "--concurrent-node-syncs=4"]

    assert cli_options.manager_options(options(*common)).status_workers == 4
    assert cli_options.manager_options(options(*common, "--concurrent-node-status-updates=2")).status_workers == 2


def test_the_effective_configuration_has_every_flag_and_no_secret(tmp_path: Path) -> None:
    (tmp_path / "cloud.conf").write_text("[Global]\ntoken = not-to-be-shown\n")

    found = cli_options.effective(options("--cloud=mycloud", f"--cloud-config={tmp_path}/cloud.conf"))

    assert found["node-monitor-period"] == 5.0
    assert found["cloud-config"] == f"{tmp_path}/cloud.conf"
    assert "not-to-be-shown" not in str(found)
    assert not {"webhooks", "command"} & found.keys()


@pytest.mark.parametrize(
    ("given", "served"), [([], False), (["--readiness-gates"], True), (["--readiness-gates=false"], False)]
)
def test_readiness_gates_are_served_if_asked_for_in_a_cloud_without_classes_that_have_them(
    given: list[str], served: bool
) -> None:
    settings = cli_options.manager_options(options("--cloud=mycloud", "--cluster-cidr=10.0.0.0/8", *given))

    assert (settings.service.gates is not None) is served


def test_the_last_day_of_the_credential_is_a_day(capsys: pytest.CaptureFixture[str]) -> None:
    pods = "--cluster-cidr=10.244.0.0/16"
    known = cli_options.manager_options(options("--cloud=mycloud", pods, "--credential-expires=2027-01-31"))
    unknown = cli_options.manager_options(options("--cloud=mycloud", pods))

    assert (known.credential_expires, unknown.credential_expires) == (date(2027, 1, 31), None)
    assert "not a day (YYYY-MM-DD)" in usage_error(capsys, "--credential-expires=31.1.2027")
