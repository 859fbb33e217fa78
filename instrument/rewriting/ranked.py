"""A kernel for several ranks in one launch (SEMANTICS 12, R-RK2): the grid of each rank is a part of the launch, in the last dimension.

Each rank has its own parameters, which follow those of rank 0, and sees the grid of a rank alone:

    mov.u32 %ranked_z, %ctaid.z; setp.eq.u32 %ranked1, %ranked_z, 1;       // at the begin of the body
    ld.param.u64 %rd1, [k_param_0]; @%ranked1 ld.param.u64 %rd1, [k_param_0_rank1];

No line of the text moves. So places in reports are those of the user's text. Five registers that the driver may define (ISA, `%envreg`)
have a meaning, for consan/include/nvshmem.h: 27 and 28 are the address of what its barriers count, a last parameter that all ranks
share; 29 is the number of the rank, 30 how many there are, 31 the distance of symmetric memory.

Not handled, and refused: variables of the module in global memory (each rank would have its own), parameters under a guard, `%ctaid`
and its kin as vectors, the number of a cluster in the last dimension, and barriers of NVSHMEM in a function that is called.
"""

from __future__ import annotations

import re
from typing import Final

from consan._errors import UsageError
from consan.instrument.ptx import Edits, Function, Instruction, Module, parse

_BARRIERS: Final = "consan_barriers"
Dim3 = tuple[int, int, int]
MOST_RANKS: Final = 16
_RANKS: Final = re.compile(r"\.reg \.pred %ranked<(\d+)>")
_EXTENT: Final = re.compile(r"mov\.u32 %ranked_nz, (\d+);")
_STRIDE: Final = re.compile(r"mov\.b32 %ranked_stride, (\d+);")
_WORD: Final = re.compile(r"[\w$]+")
_PLACES: Final = {
    "%ctaid.z": "%ranked_z",
    "%nctaid.z": "%ranked_nz",
    "%envreg27": "%ranked_low",
    "%envreg28": "%ranked_high",
    "%envreg29": "%ranked_of",
    "%envreg30": "%ranked_count",
    "%envreg31": "%ranked_stride",
}
_READS: Final = re.compile(r"%n?c(?:taid|lusterid)\b(?:\.\w)?|%envreg(?:2[789]|30|31)\b")
_LITERAL: Final = re.compile(r"\$str(\$\d+)?|__unnamed_\d+")  # as nvcc calls strings, and the names of functions for assert()
_OTHER: Final = {"%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%clusterid.z", "%nclusterid.z"}


def ranked(module: Module, entry: str, ranks: int, grid: Dim3, stride: int = 0) -> Module:
    """The module for so many ranks, each with this grid. `stride`: of symmetric memory. Raises UsageError for what it does not handle."""
    check_count(ranks)
    if not stride and "%envreg31" in module.text:
        raise UsageError("NVSHMEM reaches memory of other ranks in consan.Symmetric arguments only, and there is none")
    refuse_variables(module, ranks)
    edits = Edits(module)
    for function in module.functions:
        if function.body is not None and (function.name == entry or _places(function)):
            _rank(function, edits, ranks, grid[2], stride, of_entry=function.name == entry)
    return parse(edits.apply(), module.name)


def has_barriers(module: Module) -> bool:
    """Whether barriers of NVSHMEM are in a module: the entry then has, or gets, a last parameter for what they count."""
    return "%envreg28" in module.text or _BARRIERS in module.text


def check_count(ranks: int) -> None:
    """Raise UsageError for so many ranks."""
    if not 1 < ranks <= MOST_RANKS:
        raise UsageError(f"ranks={ranks}: expected 1 to {MOST_RANKS}")


def ranks_of(ptx: str) -> int:
    """The ranks of a launch of a module: 1 unless it was made for several."""
    found = _RANKS.search(ptx)
    return int(found[1]) if found is not None else 1


def rank_grid_of(ptx: str) -> int:
    """The CTAs of a rank in the last dimension of a launch of a module; 0 unless it was made for several."""
    found = _EXTENT.search(ptx)
    return int(found[1]) if found is not None else 0


def stride_of_ranks(ptx: str) -> int:
    """The distance of symmetric memory of two ranks; 0 if there is none."""
    found = _STRIDE.search(ptx)
    return int(found[1]) if found is not None else 0


def parameter_of(name: str, rank: int) -> str:
    """The name of a rank's parameter."""
    return f"{name}_rank{rank}" if rank else name


def of_rank(rank: int, named: re.Pattern[str], text: str) -> str:
    """A text of rank 0 with the parameters of a rank."""
    return named.sub(lambda found: parameter_of(found[0], rank), text)


def refuse_variables(module: Module, ranks: int) -> None:
    """Raise UsageError if code uses a variable in global memory that is no literal: nothing writes those."""
    names = {name.name for each in module.variables if each.space == "global" for name in each.names if not _LITERAL.fullmatch(name.name)}
    texts = (each.text for function in module.functions for each in function.instructions())
    if names and (name := next((name for text in texts for name in names.intersection(_WORD.findall(text))), "")):
        raise UsageError(f"ranks={ranks}: the variable {name} would be one of each rank; give each rank a buffer instead")


def _places(function: Function) -> list[Instruction]:
    return [each for each in function.instructions() if _READS.search(each.text)]


def _rank(function: Function, edits: Edits, ranks: int, extent: int, stride: int, *, of_entry: bool) -> None:
    assert function.body is not None
    counts = "%envreg28" in function.text
    if counts and not of_entry:
        raise UsageError(f"a barrier of NVSHMEM in {function.name}, which is called: make it a function that is inlined")
    counters = f".reg .b32 %ranked_low, %ranked_high; ld.param.v2.u32 {{%ranked_low, %ranked_high}}, [{_BARRIERS}];" * counts
    edits.insert_at(function.body.open + 1, f"{prologue(ranks, extent, stride)} {counters}".rstrip())
    named = named_of(function) if of_entry else None
    for instruction in function.instructions():
        text = with_places(instruction.text)
        if named is not None and named.search(text):
            if instruction.predicate is not None:
                raise UsageError(f"ranks={ranks}: a parameter is read under a condition: {instruction.text}")
            own = [of_rank(rank, named, text) for rank in range(ranks)]
            text = " ".join([own[0], *(f"@%ranked{rank} {each}" for rank, each in enumerate(own) if rank)])
        if text != instruction.text:
            edits.replace(instruction, text)
    if named is not None:
        _declare(function, edits, ranks, named, f", .param .u64 {_BARRIERS}" * counts)


def named_of(function: Function) -> re.Pattern[str] | None:
    """Matches the names of a function's parameters; None if it has none."""
    names = "|".join(rf"(?<![\w$%.]){re.escape(each.name)}(?![\w$])" for each in function.params)
    return re.compile(names) if names else None


def with_places(text: str) -> str:
    """A text in which the places of a CTA are those in the grid of its rank."""
    return _READS.sub(_place, text)


def _place(found: re.Match[str]) -> str:
    if found[0] in _OTHER:
        raise UsageError(f"a kernel that reads {found[0]} cannot be launched for several ranks")
    return _PLACES.get(found[0], found[0])


def prologue(ranks: int, extent: int, stride: int = 0) -> str:
    """The rank's facts that each thread has."""
    part = f"div.u32 %ranked_of, %ranked_z, {extent}; rem.u32 %ranked_z, %ranked_z, {extent};"
    of = part if extent > 1 else "mov.u32 %ranked_of, %ranked_z; mov.u32 %ranked_z, 0;"
    tests = " ".join(f"setp.eq.u32 %ranked{rank}, %ranked_of, {rank};" for rank in range(1, ranks))
    known = f"mov.b32 %ranked_count, {ranks}; mov.b32 %ranked_stride, {stride}; "
    registers = f".reg .b32 %ranked_z, %ranked_nz, %ranked_of, %ranked_count, %ranked_stride; .reg .pred %ranked<{ranks}>;"
    return f" {registers} mov.u32 %ranked_z, %ctaid.z; mov.u32 %ranked_nz, {extent}; {of} {known}{tests}"


def _declare(function: Function, edits: Edits, ranks: int, named: re.Pattern[str], last: str) -> None:
    """Give the entry the parameters of all ranks."""
    assert function.body is not None
    header = function.text[: function.body.open - function.start]
    begin, end = header.index("(") + 1, header.index(")")
    given = " ".join(header[begin:end].split())
    more = [of_rank(rank, named, given) for rank in range(1, ranks)]
    edits.insert_at(function.start + end, "".join(f", {each}" for each in more) + last)
