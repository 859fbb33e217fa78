"""The kernels of two provers' own suites: GPUVerify's CUDA tests and benchmarks, and Faial's examples, with labels and launches.

Their sources are not in this repository: `SUITES` names repository and commit. A file of GPUVerify says its label, its grid and its block
in its first lines, and what holds of the parameters by `__requires`; a file of Faial says its label by its name. A kernel's text is the
file's behind a prelude, in which the annotations mean nothing. Blocks that no device has are made smaller; so is a grid for a run.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

RACY, CLEAN, OTHER = "racy", "clean", "other"  # other: of null pointers, assertions, or what the tool does not read
Shape = tuple[int, int, int]
MOST_THREADS, MOST_CTAS = 1024, 16

_NOTHING: Final = (
    *("requires", "ensures", "assert", "assume", "requires_fresh_array", "global_invariant", "function_wide_invariant"),
    *("candidate_invariant", "non_temporal", "reads_from", "writes_to", "no_read", "no_write"),
)
PRELUDE: Final = "".join(
    (
        *(f"#define __{name}(...) ((void)0)\n" for name in (*_NOTHING, "invariant")),
        '#define __axiom(...) static_assert(true, "")\n#define __builtin_memcpy memcpy\n#define __builtin_memset memset\n',
        "typedef unsigned int uint;\n",
    )
)
_GROUPS: Final = """#include <cooperative_groups.h>
namespace cooperative_groups { template <class Group> __device__ void synchronize(Group &group) { group.sync(); } }
"""
_OLD: Final = (Path(__file__).parent / "old_cuda.cuh").read_text()
_STANDARD: Final = re.compile(r"^[ \t]*typedef[^;\n]*\b(size_t|clock_t)[ \t]*;", re.MULTILINE)  # CUDA 13 has these itself
_SPECIAL: Final = re.compile(r"(template[ \t]*<>\s*__device__[ \t]+)static\b")
_HEADER: Final = re.compile(r"^\s*//\s*(pass|xfail:\w+)\s*$", re.IGNORECASE)
_EXTENT: Final = re.compile(r"--(blockDim|gridDim)=\[?([\d,]+)\]?")
_DEFINED: Final = re.compile(r"-D\s*(\w+)(?:=(\S+))?")
_MACRO: Final = re.compile(r"^[ \t]*#define[ \t]+(\w+)[ \t]+([^\n]+?)[ \t]*$", re.MULTILINE)
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CALLED: Final = re.compile(r"__(?:requires|assume)\s*\(")
_HOST: Final = "|".join(("cuda", "stdio", "stdlib", "math", "printf", "assert", "string"))
_INCLUDE: Final = re.compile(rf'^[ \t]*#[ \t]*include[ \t]*[<"](?:{_HOST})\.h[>"]', re.MULTILINE)
# A device function that a file declares and does not define: the prover's own tool takes it for one that does nothing.
_ABSENT: Final = re.compile(r"^([ \t]*(?:extern[ \t]+)?__device__[ \t]+(\w+)[\w \t*]*\([^(){};]*\))[ \t]*;", re.MULTILINE)
# What a failing test of GPUVerify's is about, where its header does not say: neither a race nor a barrier.
_NOT_RACES: Final = ("null pointer", "assert", "invariant", "constant memory", "0-sized", "a = 12", "kernel.cu:10")
_OTHERS: Final = frozenset(
    (
        *("memcpy/null_dst", "memcpy/null_src", "memset/null_dst"),
        *("function_pointers/pass_struct/call", "pointeranalysistests/testbasicaliasing", "CUDA50/0_Simple/simpleAssert/simpleAssert"),
    )
)

_ASSUMED_BLOCK: Final = re.compile(r"__assume\((\w+) == blockDim\.x\)")
_PRODUCT: Final = re.compile(r"\d+(?: *\* *\d+)+")


@dataclass(frozen=True)
class Suite:
    """Where a suite comes from, and its folder there."""

    repository: str
    commit: str
    folder: str


SUITES: Final = {
    "gpuverify": Suite("mc-imperial/gpuverify", "49219770aad01231edd0d8e0fa3ed036006cf32a", "testsuite/CUDA"),
    "benchmarks": Suite("mc-imperial/GPUVerifyBenchmarks", "18a258eb01af9744f36b372a5e7c3e14fd5cfdb8", ""),
    "faial": Suite("elliotsayes/faial", "c29bf3398e35db1b8c896db0d098495feb15ac76", "examples/drf"),
}


@dataclass(frozen=True)
class Labelled:
    """A file with a label. `requires`: what holds of parameters, as Python writes it. `entry`: an instance of a template."""

    suite: str
    name: str
    path: Path
    label: str
    grid: Shape
    block: Shape
    defines: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    entry: str = ""

    def text(self) -> str:
        """What is compiled."""
        source = _ABSENT.sub(_with_body, _INCLUDE.sub("", self.path.read_text(errors="replace")))
        source = _SPECIAL.sub(r"\1", _STANDARD.sub("", source))
        groups = _GROUPS if "cooperative_groups" in source else ""
        random = "#include <curand_kernel.h>\n#include <curand_mtgp32_kernel.h>\n" if "curand" in source else ""
        old = _OLD if self.suite == "benchmarks" else ""
        return groups + random + PRELUDE + old + "#line 1\n" + source

    def run_grid(self) -> Shape:
        """The grid of a run: at most so many CTAs."""
        grid = self.grid
        while grid[0] * grid[1] * grid[2] > MOST_CTAS:
            grid = _halved(grid)
        return grid


def _with_body(match: re.Match[str]) -> str:
    return f"{match[1]} {{ {'' if match[2] == 'void' else 'return {};'} }}"


def cases_of(suite: str, folder: Path) -> Iterator[Labelled]:
    """The files of a suite with labels, in the checkout `folder`."""
    root = folder / SUITES[suite].folder
    for path in sorted(root.rglob("*.cu")):
        name = str(path.relative_to(root)).removesuffix(".cu").removesuffix("/kernel")
        found = _faial(path, name) if suite == "faial" else _gpuverify(suite, path, name)
        if found is not None:
            yield found


def _gpuverify(suite: str, path: Path, name: str) -> Labelled | None:
    source = path.read_text(errors="replace")
    lines = list(itertools.takewhile(lambda line: line.startswith("//"), source.splitlines()))
    says = _HEADER.match(lines[0]) if lines else None
    if says is None or len(lines) < 2:
        return None
    label = CLEAN if says[1].lower() == "pass" else RACY
    about = "\n".join(lines[2:])
    if label == RACY and (not says[1].endswith("NOT_ALL_VERIFIED") or name in _OTHERS or any(each in about for each in _NOT_RACES)):
        label = OTHER
    shapes = {which: _shape(text) for which, text in _EXTENT.findall(lines[1])}
    block, defines = _fitting(shapes.get("blockDim", (1, 1, 1))), tuple("=".join(filter(None, each)) for each in _DEFINED.findall(lines[1]))
    known = dict(_MACRO.findall(source)) | dict(each.partition("=")[::2] for each in defines)
    grid = shapes.get("gridDim", (1, 1, 1))
    return Labelled(suite, name, path, label, grid, block, defines, tuple(_conditions(source, known, block, grid)))


def _assumed_block(source: str, known: Mapping[str, str]) -> Shape:
    """The block that a file assumes; else 64 threads."""
    found = _ASSUMED_BLOCK.search(source)
    return (int(known.get(found[1], found[1])) if found else 64, 1, 1)


def _faial(path: Path, name: str) -> Labelled | None:
    label = {"drf": CLEAN, "racy": RACY}.get(name.partition("-")[0])
    if label is None:
        return None
    source = path.read_text()
    known = dict(_MACRO.findall(source))
    block = next((_fitting(_shape(text)) for which, text in _EXTENT.findall(source) if which == "blockDim"), _assumed_block(source, known))
    grid = (2, 1, 1) if label == RACY else (1, 1, 1)  # the labels are of one CTA, except those of races at grid level
    entry = "saxpy<float>" if "template" in source else ""
    requires = tuple(_conditions(source, known, block, grid))
    return Labelled("faial", name, path, label, grid, block, (), requires, entry)


def _shape(text: str) -> Shape:
    given = [int(each) for each in text.split(",")]
    return (*given, 1, 1)[:3]  # type: ignore[return-value]


def _halved(shape: Shape) -> Shape:
    largest = shape.index(max(shape))
    return tuple(-(-each // 2) if axis == largest else each for axis, each in enumerate(shape))  # type: ignore[return-value]


def _fitting(block: Shape) -> Shape:
    while block[0] * block[1] * block[2] > MOST_THREADS:
        block = _halved(block)
    return block


# -- what holds of the parameters -------------------------------------------------------------------------------------------


def _conditions(source: str, macros: Mapping[str, str], block: Shape, grid: Shape) -> Iterator[str]:
    """The conditions that `__requires` and `__assume` name, with numbers for macros and for the shape of the launch."""
    text = _COMMENT.sub(" ", source)
    numbers = {
        f"{name}.{axis}": str(value)
        for name, shape in (("blockDim", block), ("gridDim", grid))
        for axis, value in zip("xyz", shape, strict=True)
    }
    for match in _CALLED.finditer(text):
        condition = _argument(text, match.end())
        for _ in range(4):
            condition = re.sub(r"[A-Za-z_]\w*(?:\.[xyz]\b)?", lambda word: {**macros, **numbers}.get(word[0], word[0]), condition)
        condition = condition.replace("&&", " and ").replace("||", " or ").replace("/", "//")
        yield " ".join((condition.replace("|", " or ") if "==" in condition else condition).split())


def _argument(text: str, begin: int) -> str:
    depth = 1
    for place in range(begin, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return text[begin:place]
    return ""


def values_for(names: list[str], requires: tuple[str, ...], threads: int) -> dict[str, int]:
    """A value for each integer parameter with which the conditions hold, as far as they can be computed."""
    numbers = {int(each) for each in re.findall(r"\b\d+\b", " ".join(requires))}
    numbers |= {math.prod(map(int, each.split("*"))) for each in _PRODUCT.findall(" ".join(requires))}
    choices = [threads, 1, 4, 0, *sorted({near for each in numbers for near in (each, each + 1, each - 1) if near >= 0})]
    naming = {name: [text for text in requires if name in re.findall(r"\w+", text)] for name in names}
    bound = [name for name in names if naming[name]]
    values = dict.fromkeys(names, threads)
    for name in bound:  # one by one: what a condition says of a parameter alone
        alone = [text for text in naming[name] if not set(re.findall(r"\w+", text)) & (set(names) - {name})]
        values[name] = next((each for each in choices if _hold(alone, {name: each})), threads)
    for name in bound:
        values[name] = next((each for each in (values[name], *choices) if _hold(naming[name], values | {name: each})), values[name])
    return values


def _hold(conditions: list[str], values: dict[str, Any]) -> bool:
    return all(_holds(text, values) for text in conditions)


def _holds(text: str, values: dict[str, Any]) -> bool:
    """Whether a condition holds; one that Python cannot compute does."""
    try:
        return bool(eval(text, {"__builtins__": {}}, dict(values)))  # of a suite that a developer names
    except Exception:
        return True
