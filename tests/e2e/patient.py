"""A cluster as `cloud-controller doctor` sees it, run as a user runs it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cloud_controller.kube import SECRETS, Kube
from tests.e2e.local_stack import eventually

Wanted = tuple[str, str]
"""A finding's check, and a part of its subject."""


class Patient:
    """`last` is the latest report."""

    def __init__(
        self, cloud: str, kube: Kube, kubeconfig: str, folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """The cloud config is the CCM's own; `environment`: with the credentials, where it has none."""
        secret = kube.get(SECRETS, "cloud-controller-manager-config", "kube-system")
        (folder / "kubeconfig").write_text(kubeconfig)
        (folder / "cloud.conf").write_bytes(base64.b64decode(secret["data"]["cloud.conf"]))
        self._command = [
            *(sys.executable, "-m", "cloud_controller.cli", "doctor", f"--cloud={cloud}", "--output=json"),
            *(f"--kubeconfig={folder / 'kubeconfig'}", f"--cloud-config={folder / 'cloud.conf'}", "--grace=1s"),
        ]
        self._environment = {**os.environ, **(environment or {})}
        self.last: dict[str, Any] = {}

    def examined(self, *options: str) -> int:
        """Examine; returns the exit code."""
        done = subprocess.run(
            [*self._command, *options],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode in (0, 3, 4), done.stderr
        self.last = json.loads(done.stdout)
        return done.returncode

    def recovered(self) -> Patient:
        """Wait until nothing is found and every check is done."""
        try:
            eventually(lambda: self.examined() == 0 or not self.complaints(), "nothing is wrong")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.complaints()}") from None
        return self

    def complaints(self) -> list[str]:
        """The latest report in short."""
        findings = [f"{each['check']}: {each['subject']}: {each['what']}" for each in self.findings()]
        return findings + [f"not checked: {each['check']}: {each['reason']}" for each in self.last["notChecked"]]

    def findings(self) -> list[dict[str, Any]]:
        """The latest report's, without what is true of every stack once its versions have aged."""
        return [each for each in self.last["findings"] if (each["check"], each["subject"]) != ("ccm-version", "")]

    def wait_for(self, *wanted: Wanted, first: bool = False, blind: bool = False) -> None:
        """Wait for a report with these findings.

        `first`: that begins with one of them. `blind`: a check may also say that it could not look.
        """

        def found() -> bool:
            self.examined()
            not_done = {each["check"] for each in self.last["notChecked"]} if blind else set()
            return all(
                each[0] in not_done or any(_is_about(finding, *each) for finding in self.findings()) for each in wanted
            ) and (not first or any(_is_about(finding, *each) for finding in self.findings()[:1] for each in wanted))

        self._wait(found, f"findings {wanted}")

    def wait_for_first(self, wanted: Wanted, *follows: Wanted, options: Sequence[str] = ()) -> None:
        """Wait for a report that begins with this finding, has first causes of its check only, and names `follows` as
        consequences."""

        def found() -> bool:
            self.examined(*options)
            findings = self.findings()
            first = [each for each in findings if not each["followsFrom"]]
            later = [each for each in findings if each["followsFrom"]]
            return (
                any(_is_about(each, *wanted) for each in first[:1])
                and {each["check"] for each in first} == {wanted[0]}
                and all(any(_is_about(finding, *each) for finding in later) for each in follows)
            )

        self._wait(found, f"first {wanted}, then {follows}")

    def _wait(self, found: Callable[[], bool], what: str) -> None:
        try:
            eventually(found, what, 60)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.complaints()}") from None


def _is_about(finding: Mapping[str, Any], check: str, subject: str) -> bool:
    """Whether this check has found it, about this subject or one that it is a part of."""
    return bool(finding["check"] == check and subject in finding["subject"])
