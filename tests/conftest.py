"""The suite's own rules: with CI set a skipped test fails the session, and slow files are begun first.

A skip in CI would leave untried what the suite claims to cover. Two processes share the files, so a long one
that was begun last would be waited for alone.
"""

import os
from typing import Any

import pytest


class NoSkips:
    """Collects every skip, prints its reason and turns the session's exit code to failure."""

    def __init__(self) -> None:
        self.skips: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        self.skips.append(f"{report.nodeid}: {reason}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        told = getattr(session.config, "workeroutput", None)
        if told is not None:  # a worker: the process that gives it work says what came of it
            told["skips"] = self.skips
        elif self.skips and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {}).get("skips", [])
        self.skips.extend(skip for skip in told if skip not in self.skips)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skips:
            terminalreporter.section("skipped although CI is set: counts as failure", red=True)
            for skip in self.skips:
                terminalreporter.line(skip)


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        config.pluginmanager.register(NoSkips(), "no-skips")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
