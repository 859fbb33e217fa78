"""Values of consan's options under pytest, and the project's suppressions.

Precedence, lowest first: `[tool.consan]`, pytest's ini file, CONSAN_OPTIONS, an option's own variable, the command line.
Mistakes raise `pytest.UsageError`: one line, and pytest ends with status 4.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from typing import Any, Final

import pytest

from consan import config as configuration, options
from consan._errors import ConsanError
from consan.plugin.keys import ConsanWarning
from consan.session.planning.options import SessionOptions

_KEY: Final = pytest.StashKey["Settings"]()
_OURS: Final = (
    "device",
    "seed",
    "strict",
    "allow_incomplete",
    "notes",
    "details",
    "baseline",
    "suppress",
    "skip",
    "checks",
)  # also pytest's
_OF_LAUNCH: Final = (
    *("device", "seed", "policy", "timeout", "shadow_memory", "assembly"),
    *("engine", "trace_memory", "exhaustive", "sample", "keep_histories", "global_memory"),
    "explore",
)


class Settings:
    """The settings of a pytest run."""

    def __init__(self, config: pytest.Config) -> None:
        read = configuration.load(config.rootpath)
        below = [_given(config), _variables(), options.texts_of_variable(os.environ), _ini(config), read.texts]
        wanted = (*options.SESSION, *options.STATUS, *options.RUN, options.NOTES, options.DETAILED)
        values = argparse.Namespace(**{option.name: option.value(None, {}, below) for option in wanted})
        self.values, self.session = values, SessionOptions.in_arguments(values)
        self.rules = configuration.rules_of(read, values)
        for warning in read.warnings:
            config.issue_config_time_warning(ConsanWarning(warning), 2)

    @property
    def strict(self) -> bool:
        """Whether warnings, and gaps unless they are allowed, fail a test."""
        return bool(self.values.strict)

    @property
    def allow_incomplete(self) -> bool:
        """Whether a test whose kernels were not fully checked counts as any other."""
        return bool(self.values.allow_incomplete)

    @property
    def gaps_fail(self) -> bool:
        """Whether a gap fails a test."""
        return self.strict and not self.allow_incomplete

    @property
    def notes(self) -> bool:
        """Whether findings of severity note are printed in full."""
        return bool(self.values.notes)

    @property
    def shown(self) -> dict[str, bool]:
        """How much of a report is printed."""
        return {"notes": self.notes, "details": bool(self.values.details)}

    @property
    def keywords(self) -> dict[str, Any]:
        """The options of `consan.launch`."""
        return {name: getattr(self.values, name) for name in _OF_LAUNCH}

    def command(self, test: str) -> tuple[str, ...]:
        """The command that runs one test again."""
        device = () if self.values.device == "auto" else ("--consan-device", self.values.device)
        seed = ("--consan-seed", str(self.values.seed)) if self.values.seed else ()
        return ("pytest", "--consan", *device, *seed, test)


def settings_of(config: pytest.Config) -> Settings:
    """The settings of this run, read once."""
    if _KEY not in config.stash:
        with usage_errors():
            config.stash[_KEY] = Settings(config)
    return config.stash[_KEY]


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors into `pytest.UsageError`: one line."""
    try:
        yield
    except ConsanError as error:
        raise pytest.UsageError(f"consan: {error}") from None


def _given(config: pytest.Config) -> options.Texts:
    found: dict[str, tuple[str, Any]] = {}
    for name in _OURS:
        value = getattr(config.known_args_namespace, f"consan_{name}", None)
        if value is not None:
            found[name] = (f"--consan-{name}", value)
    return found


def _variables() -> options.Texts:
    variables = {option.name: option.variable for option in options.ALL}
    return {name: (variable, os.environ[variable]) for name, variable in variables.items() if os.environ.get(variable)}


def _ini(config: pytest.Config) -> options.Texts:
    found: dict[str, tuple[str, str]] = {}
    for name in _OURS:
        value = config.getini(f"consan_{name}")
        if isinstance(value, bool):
            found[name] = (f"consan_{name}", "true" if value else "false")
        elif value:
            found[name] = (f"consan_{name}", str(value))
    return found
