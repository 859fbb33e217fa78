"""The compiled machine that computes full logs (source/expansion) does what the virtual machine does, by instructions and by logs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from compact_support import compared, of_twin
from planted import break_checker, quick
from test_compact import MORE, work_with

from consan.backends.cpu.semantics.ops import DTYPES, Op, semantics
from consan.checker.compiled.expanding import StepCode
from consan.checker.logs import computing, program
from consan.checker.logs.computing import Computing
from consan.checker.logs.expand import VirtualExpander
from consan.checker.logs.program import LogProgram, program_of
from consan.instrument.ptx import parse
from consan.instrument.record.text import expansion, text

THREADS, BLOCK, WORDS = 200, (200, 1, 1), 4
TYPES = ("u8", "s8", "u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64", "pred")
FORMS = [*program.SIMPLE, *program.OF_BITS, ("neg",), ("selp",), *(("shf", side, mode) for side in "lr" for mode in ("wrap", "clamp"))]
COMPARISONS = [("setp", relation, *logic) for relation in program.COMPARED for logic in ((), ("and",), ("or",), ("xor",))]
OPCODES = [".".join((*form, kind)) for form in (*FORMS, *COMPARISONS) for kind in TYPES]
OPCODES += [f"cvt.{to}.{of}" for to in TYPES[2:-1] for of in TYPES[:-1] if not {to[0], of[0]} & {"b"}]
TABLE, TABLE_WORD = 0x2E, "table"
SOURCE = """.version 8.6
.target sm_90a
.address_size 64
.visible .const .align 16 .u64 {launch}[8];
.visible .const .align 16 .u64 {given}[6];
.visible .entry kernel() {{
.reg .b64 %c, %k, %t; .reg .b32 %a, %b; .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %w<4>; .reg .b64 %d<4>;
mov.u32 %a, %tid.x; ld.const.u64 %k, [{given}+0]; mul.wide.u32 %t, %a, 32; add.u64 %k, %k, %t;
shr.u32 %b, %a, 5; ld.const.u32 %w0, [{launch}+48]; mul.wide.u32 %c, %b, %w0; shl.b64 %c, %c, 7;
ld.const.u64 %t, [{launch}+0]; add.u64 %c, %c, %t; and.b32 %a, %a, 31; mul.wide.u32 %t, %a, 4; add.u64 %c, %c, %t;
{body}
exit;
}}
"""


def known(opcode: str) -> Op | None:
    """The virtual machine's operation, if it is one of integers."""
    op = semantics(tuple(opcode.split(".")))
    return op if op is not None and all(word in TYPES for word in (*op.sources, *op.dests)) else None


def register(word: str, number: int) -> str:
    return {"pred": "%p", "8": "%h", "16": "%h", "32": "%w", "64": "%d"}[word.lstrip("usb") if word != "pred" else word] + str(number)


def _sources(opcode: str, op: Op) -> list[str]:
    """The words of the operands. The last one of lop3 is a constant."""
    return [TABLE_WORD if opcode.startswith("lop3") and number == 3 else word for number, word in enumerate(op.sources)]


def body(opcodes: list[str]) -> str:
    """Each opcode with operands of its own registers; its result is stored as two words."""
    loads = itertools.product((("h", 16), ("w", 32), ("d", 64)), range(4))
    lines = [f"ld.global.b{bits} %{name}{number}, [%k+{8 * number}];" for (name, bits), number in loads]
    lines += [f"and.b32 %a, %w{number}, 1; setp.ne.u32 %p{number}, %a, 0;" for number in range(4)]
    for at, opcode in enumerate(opcodes):
        op = known(opcode)
        assert op is not None
        (made,) = op.dests
        into = {"pred": "%q", "16": "%r", "32": "%s", "64": "%u"}[made.lstrip("usb") if made != "pred" else made]
        sources = ", ".join(
            str(TABLE) if word == TABLE_WORD else register(word, number) for number, word in enumerate(_sources(opcode, op))
        )
        lines.append("{ .reg .pred %q; .reg .b16 %r; .reg .b32 %s; .reg .b64 %u;")
        lines.append(f"{opcode} {into}, {sources};")
        lines.append({"%q": "selp.b64 %u, 1, 0, %q;", "%r": "cvt.u64.u16 %u, %r;", "%s": "cvt.u64.u32 %u, %s;", "%u": ""}[into])
        lines.append(f"mov.b64 {{%a, %b}}, %u; st.global.u32 [%c+{256 * at}], %a; st.global.u32 [%c+{256 * at + 128}], %b; }}")
    return "\n".join(lines)


def program_for(lines: str) -> LogProgram:
    source = SOURCE.format(launch=text.PLACES, given=expansion.GIVEN, body=lines)
    return program_of(next(each for each in parse(source).functions))


def words() -> npt.NDArray[np.uint64]:
    """Four operands of each thread: of all magnitudes, with corners."""
    rng = np.random.default_rng(3)
    found = rng.integers(0, 1 << 63, (THREADS, 4), dtype=np.uint64) * np.uint64(2) + rng.integers(0, 2, (THREADS, 4), dtype=np.uint64)
    found >>= rng.integers(0, 64, (THREADS, 4), dtype=np.uint64)
    corners = [0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255, (1 << 15), (1 << 31), (1 << 63), (1 << 32) - 1, (1 << 64) - 1]
    at = rng.random((THREADS, 4)) < 0.4
    found[at] = rng.choice(np.array(corners, np.uint64), at.sum())
    return found


def logs_of(made: LogProgram, data: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32] | None:
    given = {expansion.LOGS: data, expansion.CTAS: np.zeros((1, 20), "<u4"), expansion.LEAVERS: np.zeros((1, 4), "<u4")}
    return Computing(made, {**given, expansion.CONSTANTS: np.zeros(8, np.uint8)}, BLOCK, WORDS).logs()


def computed(lines: str, data: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64] | None:
    """The words of each thread's log in pairs; None: the machine does not execute the text."""
    logs = logs_of(program_for(lines), data)
    if logs is None:
        return None
    of_threads = logs.transpose(0, 2, 1).reshape(-1, logs.shape[1])[:THREADS].astype(np.uint64)
    return of_threads[:, 0:-1:2][:, : logs.shape[1] // 2] | of_threads[:, 1::2][:, : logs.shape[1] // 2] << np.uint64(32)


def expected(opcode: str, data: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    op = known(opcode)
    assert op is not None

    def operand(word: str, number: int) -> Any:
        if word == TABLE_WORD:
            return np.full(THREADS, TABLE, np.uint32)
        if word == "pred":
            return (data[:, number] & np.uint64(1)).astype(bool)
        dtype = np.dtype(DTYPES[word])
        return np.ascontiguousarray(data[:, number]).view(dtype)[:: 8 // dtype.itemsize].copy()

    with np.errstate(all="ignore"):
        made = op.fn(*(operand(word, number) for number, word in enumerate(_sources(opcode, op))))
    made = np.asarray(made[0] if isinstance(made, tuple) else made)
    return made.view(f"u{made.dtype.itemsize}").astype(np.uint64)


def test_instructions_compute_as_on_the_virtual_machine() -> None:
    opcodes, data = [each for each in OPCODES if known(each) is not None], words()
    assert len(opcodes) > 250
    assert {each.split(".")[0] for each in opcodes} == {form[0] for form in (*FORMS, *COMPARISONS)} | {"cvt"}
    found = computed(body(opcodes), data)
    assert found is not None
    wrong = [opcode for number, opcode in enumerate(opcodes) if (found[:, number] != expected(opcode, data)).any()]
    assert wrong == []


REFUSED = ("add.f32 %w0, %w1, %w2;", "add.sat.s32 %w0, %w1, %w2;", "shfl.sync.idx.b32 %w0, %w1, 0, 31, -1;", "mov.u32 %w0, %clock;",
           "ld.global.u32 %w0, [%c];", "st.global.u32 [%k], %w0;", "ld.global.u32 %w0, [%c+-4096];", "st.global.u32 [%d0], %w0;",
           "st.global.u32 [%c+1073741824], %w0;")  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_what_the_machine_does_not_know_is_left_to_the_other(line: str) -> None:
    """Arithmetic of floats, lanes that meet, and memory that nobody has given, or that is not for this."""
    data = words()
    loaded = "ld.global.b64 %d0, [%k];"
    assert computed(f"{loaded} {line} st.global.u32 [%c], %a;", data) is None
    assert computed(f"{loaded} @%p0 bra END; st.global.u32 [%c], %a; bra LEAVE; END: {line} LEAVE:", data & np.uint64(0)) is not None


DIVERGED = """ld.global.b32 %w0, [%k]; and.b32 %w0, %w0, 7; mov.u32 %w1, 0;
ROUND: setp.ge.u32 %p0, %w1, %w0; @%p0 bra OUT; add.u32 %w1, %w1, 1; mad.lo.u32 %w2, %w2, 3, %w1;
and.b32 %w3, %w1, 1; setp.eq.u32 %p1, %w3, 0; @!%p1 bra ROUND; st.global.u32 [%c], %w2; add.u64 %c, %c, 128; bra ROUND;
OUT: @%p1 st.global.u32 [%c], %w1; @!%p1 exit; st.global.u32 [%c+128], %w2;"""


def diverged(value: int) -> list[int]:
    """The words that a thread stores."""
    stored, total, even = list[int](), 0, False
    for number in range(1, (value & 7) + 1):
        total, even = total * 3 + number, number % 2 == 0
        stored += [total] * even
    return stored + [value & 7, total] * even


def test_lanes_that_part_store_their_own_words() -> None:
    data = words()
    found = computed(DIVERGED, data)
    assert found is not None
    flat = np.stack([found & np.uint64(0xFFFFFFFF), found >> np.uint64(32)], axis=2).reshape(THREADS, -1)
    for thread, value in enumerate(data[:, 0].tolist()):
        wanted = diverged(value)
        assert flat[thread, : len(wanted)].tolist() == wanted
        assert not flat[thread, len(wanted) :].any()


COUNTED = """ld.global.b32 %w0, [%k];
ROUND: setp.eq.u32 %p0, %w0, 0; @%p0 exit; sub.u32 %w0, %w0, 1; st.global.u32 [%c], 7; add.u64 %c, %c, 128; bra ROUND;"""


@pytest.mark.parametrize("first", [1, 10, 30, 100, 1000])
def test_logs_may_be_longer_or_shorter_than_earlier_ones(first: int) -> None:
    """Lines of zeros follow each log, however long those were for which there was room before."""
    made = program_for(COUNTED)
    for count in (first, *range(first, first + WORDS + 5), first // 3, first):
        logs = logs_of(made, np.full((THREADS, 4), count, np.uint64))
        assert logs is not None
        assert (logs[0, :, 0] == 7).sum() == count
        assert count + WORDS + 3 <= logs.shape[1] <= 2 * (count + 2 * WORDS + 10)
        assert logs[:, :count].sum() == 7 * count * THREADS
        assert not logs[:, count:].any()


def both(monkeypatch: pytest.MonkeyPatch, work: Any) -> Iterator[npt.NDArray[np.uint32]]:
    """A log by the compiled machine, and by the virtual one."""
    launch = work.run(work.recorded(compact=True))
    made = list[bool]()
    with monkeypatch.context() as patched:
        compute = VirtualExpander.computed
        patched.setattr(VirtualExpander, "computed", lambda *given: (found := compute(*given), made.append(found is not None))[0])
        yield launch.histories([0])[0].log
    assert made == [True]
    with monkeypatch.context() as patched:
        patched.setattr(VirtualExpander, "computed", lambda *_: None)
        yield launch.histories([0])[0].log


@pytest.mark.parametrize("name", ["block_scan", "mbarrier_pipeline", "wgmma_tma_ring", "converged_elect", "early_exit_lanes", "block_3d"])
def test_logs_are_those_of_the_virtual_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_one, slow_one = both(monkeypatch, of_twin(name))
    lines = min(quick_one.shape[1], slow_one.shape[1])
    assert np.array_equal(quick_one[:, :lines], slow_one[:, :lines])
    assert not quick_one[:, lines:].any()
    assert not slow_one[:, lines:].any()


def test_a_program_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "MOST_STEPS", 1 << 16)
    assert computed("ROUND: bra ROUND;", words()) is None


FAULTS = {
    "signs are lost": quick("lanes.hpp", "return IS_SIGNED && (T)a < 0 ? ~0ull : 0;", "return 0;"),
    "other lanes are forgotten": quick("expansion.hpp", "mask_ |= each.mask;", "mask_ = mask_ ? mask_ : each.mask;"),
    "guards are not looked at": quick("expansion.hpp", "mask_ & guarded(step)", "mask_"),
    "lanes that jump are lost": quick("expansion.hpp", "wait(step.target, active);", ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    break_checker(monkeypatch, tmp_path, (computing,), *FAULTS[fault])
    assert not all(map(_holds, (test_instructions_compute_as_on_the_virtual_machine, test_lanes_that_part_store_their_own_words)))


def _holds(test: Callable[[], None]) -> bool:
    try:
        test()
    except AssertionError:
        return False
    return True


PACKED = """ld.global.b16 %h1, [%k]; mov.b64 %d0, {-1, %h1, -2, 0}; mov.b32 %w0, {-1, %h1}; mov.b64 {%a, %b}, %d0;
st.global.u32 [%c], %a; st.global.u32 [%c+128], %b; st.global.u32 [%c+256], %w0;"""


def test_constants_that_are_packed_are_as_wide_as_their_elements() -> None:
    data = words()
    found = computed(PACKED, data)
    assert found is not None
    assert found[:, 0].tolist() == [0xFFFE0000FFFF | (value & 0xFFFF) << 16 for value in data[:, 0].tolist()]
    assert (found[:, 1] & np.uint64(0xFFFFFFFF)).tolist() == [0xFFFF | (value & 0xFFFF) << 16 for value in data[:, 0].tolist()]


def test_packed_constants_with_more_bits_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "packed_element", lambda writer, operand, scope, _: writer.source(operand, scope))
    with pytest.raises(AssertionError):
        test_constants_that_are_packed_are_as_wide_as_their_elements()


STEPS_THAT_ARE_WRONG = {StepCode.LESS: StepCode.AT_MOST, StepCode.LEFT_SHIFT: StepCode.RIGHT_SHIFT, StepCode.MAD_WIDE: StepCode.MAD}


@pytest.mark.parametrize("code", STEPS_THAT_ARE_WRONG)
def test_a_wrong_row_is_seen(code: StepCode, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (program.SIMPLE, program.COMPARED):
        for key, row in dict(table).items():
            if code in row:
                monkeypatch.setitem(table, key, tuple(STEPS_THAT_ARE_WRONG[each] if each is code else each for each in row))
    with pytest.raises(AssertionError):
        test_instructions_compute_as_on_the_virtual_machine()


@pytest.mark.parametrize("name", ["a count out of memory", "lanes that exit", "a table of branches"])
def test_full_logs_say_the_same(name: str) -> None:
    assert compared(work_with(MORE[name])) == ""


def test_every_operand_is_tried() -> None:
    """The operands of the first test have each corner in each place."""
    data = words()
    assert all((data[:, place] == corner).any() for place, corner in itertools.product(range(4), (0, 1, 32, 1 << 31, (1 << 64) - 1)))
