"""Says after a run how many damaged inputs each parser was given and how they ended."""

from __future__ import annotations

import sys

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line a parser."""
    module = sys.modules.get("tests.fuzz.test_parsers")
    tally = getattr(module, "TALLY", {})
    if not tally:
        return
    terminalreporter.section("damaged inputs")
    for name, counts in tally.items():
        endings = ", ".join(f"{count:,} {end}" for end, count in sorted(counts.items()))
        terminalreporter.line(f"{name}: {endings}")
    terminalreporter.line(f"{sum(sum(counts.values()) for counts in tally.values()):,} in all")
