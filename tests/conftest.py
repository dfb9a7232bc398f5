"""With CI set a skipped test fails the session: there the suite must have run what it claims to cover."""

import os

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
        if self.skips and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skips:
            terminalreporter.section("skipped although CI is set: counts as failure", red=True)
            for skip in self.skips:
                terminalreporter.line(skip)


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        config.pluginmanager.register(NoSkips(), "no-skips")
