"""Called hooks are reached by `--engine inline` alone: no launch is checked with them because it cannot be recorded."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import consan
from consan.options import ENGINES, INLINE
from consan.session.executing.loading import Modules
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

PACKAGE = Path(consan.__file__).parent
DOOR = re.compile(r"\blate\.hooks\.(\w+)")
# What asks for the hooks' packages: the session that has called hooks, and commands that show what hooks do.
ASKERS = {
    ("session/executing/loading.py", "instrument"),
    ("session/executing/loading.py", "library_for"),
    ("session/executing/loading.py", "Room"),
    ("session/modules/device.py", "Shadow"),
    ("session/modules/device.py", "arena_bytes_of"),
    ("commands/ptx.py", "instrument"),
    ("commands/ptx.py", "library_for"),
    ("commands/doctor.py", "describe_bounds"),
    ("commands/run.py", "describe_most"),
}


LOADING = (PACKAGE / "session/executing/loading.py").read_text()


def _callers(name: str) -> list[str]:
    """The functions of loading.py that name a method."""
    functions = [each for each in ast.walk(ast.parse(LOADING)) if isinstance(each, ast.FunctionDef)]
    return [each.name for each in functions for at in ast.walk(each) if isinstance(at, ast.Attribute) and at.attr == name]


def test_few_files_ask_for_the_room() -> None:
    found = {(str(path.relative_to(PACKAGE)), name) for path in PACKAGE.rglob("*.py") for name in DOOR.findall(path.read_text())}
    assert found == ASKERS


def test_one_place_decides_and_the_option_alone() -> None:
    assert _callers("_rewritten") == ["_instrument"]
    assert _callers("_instrument") == ["_instrumented"]
    assert "recorded = ptx if isinstance(ptx, str) else ptx.text, self.records\n" in LOADING
    assert LOADING.count(" recorded =") == 1
    for engine in ENGINES:
        assert SessionOptions(engine=engine).records is (engine != INLINE)


@pytest.mark.parametrize("function", [Modules.instrument, Modules.for_framework, Modules.prepare, Session.instrument_for_framework])
def test_nobody_else_may_choose_an_engine(function: object) -> None:
    assert not {"recorded", "engine", "hooks"} & set(inspect.signature(function).parameters)  # type: ignore[arg-type]
