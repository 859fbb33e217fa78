"""Hooks before loads, stores, atomics and matrix loads and stores of shared memory (ISA "ld", "st", "atom", "red", "ldmatrix").

A generic address is classified at run time (`isspacep.shared`), and the hook is called for shared memory only. `ldmatrix` and
`stmatrix` take one 16-byte row from each of the first 8, 16 or 32 lanes ("ldmatrix", table of threads and addresses). The hook also
gets the stored value, to tell writers of the same value from writers of different values (R-RACE).
"""

from __future__ import annotations

from collections.abc import Iterable

from consan.instrument.abi.flags import PatternFlags, SiteFlags
from consan.instrument.abi.hooks import HOOKS, hook
from consan.instrument.isa import MemoryAccess, transposes
from consan.instrument.passes import globals as global_sides
from consan.instrument.ptx import Operand, Vector
from consan.instrument.rewriting.context import Context, FunctionPlan, Work, operand_of
from consan.instrument.rewriting.emit import (
    SELF,
    Snippet,
    Unsupported,
    guard_text,
    is_ranked,
    narrow_guard,
    shared_address,
    value_words,
    wide_address,
)
from consan.instrument.rewriting.pieces import WIDTHS, pieces
from consan.instrument.runtime import RuntimeLibrary

_ROW_WORDS = 4  # of a row of stmatrix


def run(context: Context) -> None:
    """Insert a hook before every memory instruction of the plans (copies.py handles cp.async)."""
    for plan in context.instrument(lambda work: _instrument if work.row.is_ordinary or work.row.is_matrix_access else None):
        plan.stats.memory_sites += 1


def inline_size(plans: Iterable[FunctionPlan], library: RuntimeLibrary) -> int:
    """Characters that pasting the hooks of a module in line would add."""
    total = 0
    for work in (work for plan in plans for work in plan.work if work.row.is_load or work.row.is_store or work.row.is_matrix_access):
        access = work.event.first
        fast = HOOKS.get(f"fast_{_hook_name(work, access, bytes_of(work, access))}")
        total += len(library.functions[fast.symbol]) if fast is not None else 0
    return total


def _instrument(context: Context, plan: FunctionPlan, work: Work) -> None:
    access = next(a for a in work.event.accesses if a.may_be_shared or a.in_global)
    text = _global_text(context, plan, work, access) if access.in_global else _shared_text(context, plan, work, access)
    context.edits.insert_before(work.instruction, text)


def bytes_of(work: Work, access: MemoryAccess) -> int:
    """The bytes at the address that one thread gives."""
    return 16 if work.row.is_matrix_access else access.total_bytes


def _shared_text(context: Context, plan: FunctionPlan, work: Work, access: MemoryAccess) -> str:
    nbytes = bytes_of(work, access)
    if nbytes not in WIDTHS or access.address is None:
        raise Unsupported(f"access of {nbytes} bytes")
    snippet, instruction = Snippet(), work.instruction
    condition = ""
    if access.is_generic:
        wide = wide_address(snippet, access.address, instruction.scope)
        condition, address = snippet.register("pred"), snippet.register("b32")
        snippet.add(f"isspacep.{context.window} {condition}, {wide};")
        snippet.add(f"cvta.to.{context.window}.u64 {wide}, {wide};")
        snippet.add(f"cvt.u32.u64 {address}, {wide};")
    else:
        address = shared_address(snippet, access.address, instruction.scope)
    address = context.located(snippet, address, ranked=is_ranked(access))
    if work.row.is_matrix_access:
        condition = _participates(snippet, work)
    values = _values(work, access, snippet)
    guard = narrow_guard(snippet, instruction, condition) if condition else guard_text(instruction)
    narrow = bool(context.variant.cluster and access.is_strong and access.is_of_cta)
    for piece in pieces(plan, work, access, nbytes):
        site = context.site(plan, work, access.access, access.space, piece.size, unused=piece.unused)
        place = address
        if piece.offset:
            place = snippet.register("b32")
            snippet.add(f"add.u32 {place}, {address}, {piece.offset};")
        number = SiteFlags(site.number) | SiteFlags.CTA * narrow if access.is_strong else site.number
        words = dict(zip("abcd", values[piece.offset // 4 :], strict=False))
        context.access_hook(snippet, hook(_hook_name(work, access, piece.size), address=place, site=number, **words), guard)
    if access.is_generic and work.row.is_ordinary:
        global_sides.add_access(context, work, access, site, snippet)
    if context.variant.flags and access.is_strong:
        _flag_hooks(context, work, access, snippet, address, guard)
    return snippet.text()


def _flag_hooks(context: Context, work: Work, access: MemoryAccess, before: Snippet, address: str, guard: str) -> None:
    """Edges through strong accesses. A release is published before the access; an acquire takes the edge after it."""
    flags = PatternFlags.CTA if context.variant.cluster and access.is_of_cta else PatternFlags.NONE
    if access.writes:
        releases = flags | (PatternFlags.ORDERS if access.releases else PatternFlags.NONE)
        context.call(before, hook("flag_write", address=address, releases=releases), guard=guard)
    # A reduction returns nothing, so it forms no acquire pattern (8.11.1).
    if access.reads and not work.row.is_reduction:
        keep, mine = f"%__consan_f{work.instruction.start}", f"%__consan_g{work.instruction.start}"
        before.outer.append(f".reg .b32 {keep}; .reg .pred {mine};")
        before.add(f"mov.b32 {keep}, {address}; setp.ne.u32 {mine}, 0, 0;")
        before.add(f"{guard}setp.eq.u32 {mine}, 0, 0;")
        after = Snippet()
        acquires = flags | (PatternFlags.ORDERS if access.acquires else PatternFlags.NONE)
        context.call(after, hook("flag_read", address=keep, acquires=acquires), guard=f"@{mine} ")
        context.edits.insert_after(work.instruction, "\n" + after.text())


def _participates(snippet: Snippet, work: Work) -> str:
    if "m8n8" not in work.words:
        raise Unsupported(work.instruction.opcode)
    lane, condition = snippet.register("b32"), snippet.register("pred")
    snippet.add(f"mov.u32 {lane}, %laneid;")
    snippet.add(f"setp.lt.u32 {condition}, {lane}, {work.row.address_lanes(work.instruction.parts)};")
    return condition


def _hook_name(work: Work, access: MemoryAccess, nbytes: int) -> str:
    if work.row.is_update:
        return f"atomic{nbytes}"
    verb = "write" if access.writes else "read"
    return f"{'strong_' if access.is_strong else ''}{verb}{nbytes}"


def _values(work: Work, access: MemoryAccess, snippet: Snippet) -> list[str]:
    if access.reads or access.is_strong:
        return []
    if work.row.is_matrix_access:
        return row_words(work, SELF, snippet)
    roles = work.event.roles
    source: Operand = work.instruction.operands[roles.index("src")]
    elements: list[Operand] = list(source.elements) if isinstance(source, Vector) else [source]
    if access.width_bytes == 16:
        return [SELF] * max(1, bytes_of(work, access) // 4)
    return value_words(elements, access.width_bytes, snippet, work.instruction.scope)


def row_words(work: Work, own: str, snippet: Snippet) -> list[str]:
    """The four words of the row that a lane of `stmatrix` addresses. `own`: a register that differs between threads."""
    source = operand_of(work, "src")
    elements: list[Operand] = list(source.elements) if isinstance(source, Vector) else [source]  # type: ignore[list-item]
    matrices = value_words(elements, 4, snippet, work.instruction.scope)
    whole, mask = snippet.register("pred"), snippet.register("b32")
    snippet.add(f"activemask.b32 {mask}; setp.eq.u32 {whole}, {mask}, -1;")
    return [_row_word(work, matrices, word, whole, own, snippet) for word in range(_ROW_WORDS)]


def _row_word(work: Work, matrices: list[str], word: int, whole: str, own: str, snippet: Snippet) -> str:
    """A word of the row that this lane addresses, from the lanes that hold it (ISA "stmatrix", as the fragments of "mma").

    Lane L addresses row L % 8 of matrix L / 8. Lanes 4r to 4r + 3 hold the words of row r. With `.trans`, lane 4j + r / 2 holds element j
    of row r, in the half given by the parity of r. `.aligned` needs all lanes. But between hooks the hardware may run lanes one after
    another, and a hook must not wait. So lanes exchange data only if all are active (`whole`); otherwise different threads count as
    storing different values.
    """
    guard, transposed = narrow_guard(snippet, work.instruction, whole), transposes(work.instruction)
    lane, row, result, of_matrix = (snippet.register(kind) for kind in ("b32", "b32", "b32", "pred"))
    snippet.add(f"mov.u32 {lane}, %laneid; and.b32 {row}, {lane}, 7; shr.u32 {lane}, {lane}, 3; mov.b32 {result}, {own};")
    for number, matrix in enumerate(matrices):
        got = _transposed_word(guard, matrix, row, word, snippet) if transposed else snippet.register("b32")
        if not transposed:
            holder = snippet.register("b32")
            snippet.add(f"mad.lo.u32 {holder}, {row}, 4, {word}; {guard}shfl.sync.idx.b32 {got}, {matrix}, {holder}, 31, -1;")
        snippet.add(f"setp.eq.and.u32 {of_matrix}, {lane}, {number}, {whole}; @{of_matrix} mov.b32 {result}, {got};")
    return result


def _transposed_word(guard: str, matrix: str, row: str, word: int, snippet: Snippet) -> str:
    holder, low, high, half = (snippet.register("b32") for _ in range(4))
    snippet.add(f"shr.u32 {holder}, {row}, 1; add.u32 {holder}, {holder}, {8 * word};")
    snippet.add(f"{guard}shfl.sync.idx.b32 {low}, {matrix}, {holder}, 31, -1; add.u32 {holder}, {holder}, 4;")
    snippet.add(f"{guard}shfl.sync.idx.b32 {high}, {matrix}, {holder}, 31, -1;")
    snippet.add(f"and.b32 {half}, {row}, 1; mad.lo.u32 {half}, {half}, 0x2222, 0x5410; prmt.b32 {low}, {low}, {high}, {half};")
    return low


def _global_text(context: Context, plan: FunctionPlan, work: Work, access: MemoryAccess) -> str:
    snippet = Snippet()
    global_sides.add_access(context, work, access, context.site(plan, work, access.access, "global", access.total_bytes), snippet)
    return snippet.text()
