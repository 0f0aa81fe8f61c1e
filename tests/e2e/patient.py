"""A cluster as `cloud-controller doctor` sees it, run as a user runs it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cloud_controller.kube import SECRETS, Kube
from tests.e2e.local_stack import eventually


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
        """The latest report in short, without what is true of every stack once its versions have aged."""
        aged = [each for each in self.last["findings"] if (each["check"], each["subject"]) == ("ccm-version", "")]
        findings = [
            f"{each['check']}: {each['subject']}: {each['what']}" for each in self.last["findings"] if each not in aged
        ]
        return findings + [f"not checked: {each['check']}: {each['reason']}" for each in self.last["notChecked"]]

    def wait_for(self, *wanted: tuple[str, str], first: bool = False, blind: bool = False) -> None:
        """Wait for a report with findings of these checks about these subjects.

        `first`: each as one of its first causes. `blind`: a check may also say that it could not look.
        """

        def found() -> bool:
            self.examined()
            not_done = {each["check"] for each in self.last["notChecked"]} if blind else set()
            return all(
                check in not_done
                or any(
                    each["check"] == check and subject in each["subject"] and (not first or not each["followsFrom"])
                    for each in self.last["findings"]
                )
                for check, subject in wanted
            )

        try:
            eventually(found, f"findings {wanted}", 60)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.complaints()}") from None
