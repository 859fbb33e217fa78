"""`[tool.consan]` of pyproject.toml: defaults of options, and suppressions.

The file is the nearest one above the working directory that has the table; folders above a repository's own (one with `.git`) are not
looked at. A key that nothing reads is a warning with the file's name; a wrong value, and TOML that cannot be read, are errors.

    [tool.consan]
    device = "cpu"
    strict = true

    [[tool.consan.suppressions]]
    kind = "data-race"                  # required, and so is the reason
    kernel = "histogram*"               # globs; both may be left out
    source = "vendor/*.cu"
    reason = "every thread stores the same value"
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from consan import late, options
from consan._errors import UsageError, did_you_mean
from consan.dataclass import dataclass
from consan.reports.verdict.suppression import Rule, SuppressionError, make_rule

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAME: Final = "pyproject.toml"
SUPPRESSIONS: Final = "suppressions"
_RULE_KEYS: Final = ("kind", "kernel", "source", "reason")


@dataclass(frozen=True)
class Config:
    """The settings of a project: texts of options, suppressions, and warnings about them."""

    texts: options.Texts
    rules: tuple[Rule, ...] = ()
    warnings: tuple[str, ...] = ()
    file: str = ""


def load(start: Path | None = None) -> Config:
    """The configuration for a folder (the working directory); an empty one without such a file."""
    for folder in _folders((start or Path.cwd()).absolute()):
        path = folder / NAME
        table = _table(path) if path.is_file() else None
        if table is not None:
            return _config(os.path.relpath(path) if start is None else str(path), table)
    return Config({})


def rules_of(read: Config, values: Any) -> tuple[Rule, ...]:
    """The rules of a run: those of the project, and those of the options that it has. Raises UsageError."""
    skip, checks, file, known = (getattr(values, name, None) for name in ("skip", "checks", "suppress", "baseline"))
    return (*read.rules, *(_rules_in(file) if file else ()), *late.suppressions.chosen(skip, checks), *late.suppressions.baseline(known))


def _rules_in(file: str) -> tuple[Rule, ...]:
    """The suppressions of a file of its own."""
    table = _table(Path(file))
    rules = _rules(file, (table or {}).get(SUPPRESSIONS, []))[0]
    if not rules:
        raise UsageError(f"{file} has no [[tool.consan.{SUPPRESSIONS}]]")
    return rules


def _folders(start: Path) -> Iterator[Path]:
    for folder in (start, *start.parents):
        yield folder
        if (folder / ".git").exists():
            return


def _table(path: Path) -> Mapping[str, Any] | None:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    tool = data.get("tool")
    table = tool.get("consan") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{path}: tool.consan is not a table")
    return table


def _config(name: str, table: Mapping[str, Any]) -> Config:
    known = {option.name.replace("_", "-"): option for option in options.ALL}
    texts, warnings = {}, []
    for key, value in table.items():
        option = known.get(key.replace("_", "-"))
        where = f"{name}: tool.consan.{key}"
        if option is not None:
            texts[option.name] = (where, _text(value, where))
        elif key != SUPPRESSIONS:
            warnings.append(_unknown(where, key, (*known, SUPPRESSIONS)))
    rules, more = _rules(name, table.get(SUPPRESSIONS, []))
    return Config(texts, rules, (*warnings, *more), name)


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        raise UsageError(f"{where}: expected text or a number")
    return str(value)


def _unknown(where: str, key: str, known: tuple[str, ...]) -> str:
    return f"{where}: nothing reads this key{did_you_mean(key, known)}"


def _rules(name: str, tables: Any) -> tuple[tuple[Rule, ...], list[str]]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{name}: tool.consan.{SUPPRESSIONS}: expected tables, [[tool.consan.{SUPPRESSIONS}]]")
    places = [f"{name}, suppression {number}" for number in range(1, len(tables) + 1)]
    rules = tuple(_rule(place, table) for place, table in zip(places, tables, strict=True))
    unread = [(place, key) for place, table in zip(places, tables, strict=True) for key in table if key not in _RULE_KEYS]
    return rules, [_unknown(f"{place}: {key}", key, _RULE_KEYS) for place, key in unread]


def _rule(place: str, table: Mapping[str, Any]) -> Rule:
    wrong = next((key for key in _RULE_KEYS if not isinstance(table.get(key, ""), str)), None)
    if wrong is not None:
        raise UsageError(f"{place}: {wrong}: expected text")
    if "kind" not in table:
        raise UsageError(f"{place}: kind is missing")
    given = {key: table[key] for key in ("kernel", "source") if key in table}
    try:
        return make_rule(table["kind"], table.get("reason", ""), place, **given)
    except SuppressionError as error:
        raise UsageError(str(error)) from None
