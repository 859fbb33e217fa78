"""`pytest --consan-mutate`: the mutation score of a suite, at the end of the run.

Not handled: pytest-xdist, whose workers would each know a part of the launches.
"""

from __future__ import annotations

import pytest

from consan.session.asking.mutation import Mutation


class Score:
    """Listens to all recorded launches of a run."""

    def __init__(self, config: pytest.Config) -> None:
        if getattr(config.option, "numprocesses", None):
            raise pytest.UsageError("--consan-mutate: not with -n: each worker would know a part of the launches")
        self._mutation = Mutation()
        self._mutation.listen()
        config.add_cleanup(self._mutation.stop)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the score."""
        terminalreporter.section("consan: mutation score")
        for line in self._mutation.lines() if self._mutation.noticed else ["no launch was recorded: the score needs the virtual machine"]:
            terminalreporter.line(line)
