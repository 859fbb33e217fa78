"""The atomics of CuTe DSL get the line of their statement, as its other operations have it; those that have it are left alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from consan.adapters.driven.cute import keep_lines
from consan.adapters.without_ptx import cute_keeps
from consan.native.python.frameworks import environment


def _decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **named: Any) -> Any:
        return ("a line", function(*args, **named))

    return wrapper


def _wrappers(**more: Any) -> Any:
    with_line = _decorated(lambda value: value + 2)
    return SimpleNamespace(atomic_add=lambda value: value + 1, atomic_cas=with_line, brev=lambda value: -value, **more)


def test_atomics_have_lines() -> None:
    wrappers = _wrappers(dsl_user_op=_decorated)
    before = wrappers.atomic_cas
    keep_lines(wrappers)
    assert wrappers.atomic_add(3) == ("a line", 4)
    assert wrappers.atomic_cas is before
    assert wrappers.brev(3) == -3


def test_another_version_is_left_alone() -> None:
    wrappers = _wrappers()
    keep_lines(wrappers)
    assert wrappers.atomic_add(3) == 4


def test_both_languages_of_cute_dsl_leave_their_text(tmp_path: Path) -> None:
    of_program = environment(tmp_path)
    for language in ("CUTE_DSL", "CUTE_EXPERIMENTAL_DSL"):
        wanted = {f"{language}_{name}": value for name, value in (("KEEP", "ptx,cubin"), ("DUMP_DIR", str(tmp_path)), ("LINEINFO", "1"))}
        assert wanted.items() <= cute_keeps(tmp_path).items()
        assert wanted.items() <= of_program.items()
