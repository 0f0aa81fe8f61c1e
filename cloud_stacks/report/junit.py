"""A report as JUnit: a suite a stack, a test a policy finding, and one for the plan itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from cloud_stacks.comparison import StackReport
from cloud_stacks.report.words import safe


def render(reports: Sequence[StackReport]) -> str:
    """The suites. What closes the gate is a failure; another rule that could not be evaluated is skipped."""
    suites = Element("testsuites", name="cloud-stacks")
    for report in reports:
        suite = SubElement(suites, "testsuite", name=safe(report.stack))
        plan = SubElement(suite, "testcase", classname=safe(report.stack), name="plan")
        errors = [problem for problem in report.problems if problem.severity == "error"]
        if errors:
            failure = SubElement(plan, "failure", message=safe(errors[0].message))
            failure.text = "\n".join(safe(f"{problem.urn} {problem.message}") for problem in errors)
        failed, skipped = int(bool(errors)), 0
        for finding in report.findings:
            name = safe(f"{finding.policy} {finding.urn}")
            case = SubElement(suite, "testcase", classname=safe(report.stack), name=name)
            if finding.fails:
                SubElement(case, "failure", message=safe(finding.message), type=finding.level)
                failed += 1
            elif finding.level == "not-evaluated":
                SubElement(case, "skipped", message=safe(finding.message))
                skipped += 1
            else:
                SubElement(case, "system-out").text = safe(f"{finding.level}: {finding.message}")
        suite.attrib.update(tests=str(len(report.findings) + 1), failures=str(failed), skipped=str(skipped))
    indent(suites)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{tostring(suites, encoding='unicode')}\n"
