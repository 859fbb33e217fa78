"""Launches that a file describes in TOML, for kernels without a host's code. `k.toml` beside `k.ptx` or `k.cu` (tutorials/guide/audit.md).

    [arrays]                       # shared by all launches of the file
    partial = "f32[64]=zeros"

    [[launch]]
    kernel = "reduce"              # may be left out if the file has one; an instance of a template: "reduce<float, 128>"
    grid = 64                      # or [64, 2]
    block = 128
    shared = 512                   # dynamic shared memory in bytes [0]
    cluster = 2                    # [1]
    cooperative = false
    arguments = ["f32[8192]=random", "partial", "i32=8192"]

Arguments are written as those of `consan check --arg` (consan/launching/arguments.py).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from consan._errors import UsageError, did_you_mean
from consan.dataclass import dataclass
from consan.instrument.ptx.extents import three_extents
from consan.launching.arguments import Dim3, check_dimensions

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUFFIX: Final = ".toml"
_KEYS: Final = ("kernel", "grid", "block", "shared", "cluster", "cooperative", "arguments")


@dataclass(frozen=True)
class LaunchSize:
    """How a kernel is launched, without its arguments."""

    grid: Dim3
    block: Dim3
    shared: int = 0
    cluster: Dim3 = (1, 1, 1)
    cooperative: bool = False


@dataclass(frozen=True)
class DescribedLaunch:
    """One launch. `kernel`: None, if the file has one only. `arguments`: as texts, or names of arrays."""

    kernel: str | None
    shape: LaunchSize
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class LaunchFile:
    """The launches of a file in order, and the arrays that they share, by name."""

    launches: tuple[DescribedLaunch, ...]
    arrays: Mapping[str, str]


def read_launches(text: str) -> LaunchFile:
    """Read the file. Raises UsageError that says what is wrong."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"not TOML: {error}") from None
    _known(found, ("launch", "arrays"), "the file")
    launches, arrays = found.get("launch"), found.get("arrays", {})
    if not isinstance(launches, list) or not launches:
        raise UsageError("expected [[launch]]")
    if not all(isinstance(each, str) for each in arrays.values()):
        raise UsageError('[arrays]: expected NAME = "TYPE[N]=random"')
    return LaunchFile(tuple(_launch(each, f"launch {number}") for number, each in enumerate(launches, 1)), arrays)


def _known(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in keys:
            raise UsageError(f"{where}: no key '{key}'; it has {', '.join(keys)}{did_you_mean(key, keys)}")


def _launch(table: Any, where: str) -> DescribedLaunch:
    _known(table, _KEYS, where)
    kernel, arguments = table.get("kernel"), table.get("arguments", [])
    if not (kernel is None or isinstance(kernel, str)) or not isinstance(arguments, list) or not all(isinstance(a, str) for a in arguments):
        raise UsageError(f"{where}: expected a text for kernel, and a list of texts for arguments")
    shared = table.get("shared", 0)
    if type(shared) is not int or shared < 0:
        raise UsageError(f"{where}: expected a number of bytes for shared, got {shared!r}")
    grid, block, cluster = (_dim3(table, key, where) for key in ("grid", "block", "cluster"))
    try:
        check_dimensions(grid, block, cluster)
    except UsageError as error:
        raise UsageError(f"{where}: {str(error).replace('--', '')}") from None
    return DescribedLaunch(kernel, LaunchSize(grid, block, shared, cluster, table.get("cooperative") is True), tuple(arguments))


def _dim3(table: Mapping[str, Any], key: str, where: str) -> Dim3:
    given = table.get(key, 1 if key == "cluster" else None)
    numbers = given if isinstance(given, list) else [given]
    if not 1 <= len(numbers) <= 3 or not all(type(each) is int and each > 0 for each in numbers):
        raise UsageError(f"{where}: expected {key} = X or [X, Y, Z] with numbers above zero, got {given!r}")
    return three_extents(numbers)
