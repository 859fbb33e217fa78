"""Sums that all lanes of a warp store are equal whatever the data are: other launches need no log. Those that may differ are compared."""

from __future__ import annotations

import numpy as np
import pytest
from planted import plant

import consan
from consan.checker.judging import recorder
from consan.instrument.ptx import parse
from consan.instrument.record.analyses import exchanged
from consan.instrument.record.analyses.exchanged import ExchangedValues
from consan.reports.model import Report

CTAS, ODD, ALL = 24, 17, (16, 8, 4, 2, 1)
KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 out)
.reqntid 64, 1, 1
{
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<30>; .reg .f32 %f<20>; .reg .b64 %d<8>;
    .shared .align 8 .b8 sums[64];
    ld.param.u64 %d1, [from];
    ld.param.u64 %d2, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r3, %r2, 64, %r1;
    mul.wide.u32 %d3, %r3, 4;
    add.u64 %d4, %d1, %d3;
    add.u64 %d5, %d2, %d3;
    ld.global.u32 %r4, [%d4];
    shr.u32 %r5, %r1, 5;
    shl.b32 %r6, %r5, 3;
    mov.u32 %r7, sums;
    add.u32 %r7, %r7, %r6;
    BODY
    bar.sync 0;
    ld.shared.u32 %r9, [%r7];
    st.global.u32 [%d5], %r9;
    ret;
}
"""


def steps(distances: tuple[int, ...] = ALL, operation: str = "add.u32", behind: str = "", mask: str = "-1", clamp: int = 31) -> str:
    """Steps of a sum, and a store of it by all lanes. `behind`: each shuffle."""
    lines = [f"shfl.sync.bfly.b32 %r10, %r4, {each}, {clamp}, {mask}; {behind} {operation} %r4, %r4, %r10;" for each in distances]
    return " ".join([*lines, "st.shared.u32 [%r7], %r4;"])


def reals(first: str) -> str:
    """A sum of reals. `first`: makes the first value of each lane, %r4."""
    lines = [f"shfl.sync.bfly.b32 %r10, %r4, {each}, 31, -1; add.f32 %r11, %r4, %r10; mov.b32 %r4, %r11;" for each in ALL]
    return " ".join([first, *lines, "st.shared.b32 [%r7], %r4;"])


SUM = steps()
EQUAL = {
    "add": SUM,
    "labels for debuggers": SUM.replace("; shfl", "; A: shfl", 1).replace(";  add", "; B: add", 1).replace("; st.", "; C: st."),
    "reals": reals("add.f32 %r4, %r4, %r4;"),
    "loaded reals": reals("ld.global.b32 %r4, [%d4];"),
    "another order": steps((1, 2, 4, 8, 16)),
    "masks of several bits": steps((31, 1, 3, 7, 15)),
    "max, the operands exchanged": SUM.replace("add.u32 %r4, %r4, %r10", "max.s32 %r4, %r10, %r4"),
    "a mask in bits": steps(mask="0xffffffff"),
    "of the CTA": "add.u32 %r4, %r2, 1; st.shared.u32 [%r7], %r4;".replace("%r2", "%ctaid.x"),
    "some lanes store": SUM.replace("st.shared", "setp.gt.u32 %p1, %r1, 3; @%p1 st.shared"),
}
DIFFER = {
    "a step is missing": steps((16, 8, 4, 2)),
    "one step twice": steps((16, 8, 4, 2, 2)),
    "none": "st.shared.u32 [%r7], %r4;",
    "differences": steps(operation="sub.u32"),
    "half of a warp": steps(clamp=0xF),
    "segments": steps(clamp=0x101F),
    "fewer lanes": steps(mask="0x7fffffff"),
    "a mask that is not known": steps(mask="%r1"),
    "lanes down": SUM.replace("bfly", "down"),
    "the own value changes": steps(behind="xor.b32 %r4, %r4, %r1;"),
    "a guard": steps(operation="@%p1 add.u32"),
    "a guarded shuffle": SUM.replace("shfl", "@%p1 shfl", 1),
    "the number of the lane behind": SUM.replace("st.shared", "add.u32 %r4, %r4, %r1; st.shared"),
    "a loop": f"L: {SUM} setp.ne.u32 %p1, %r4, 0; @%p1 bra L;",
    "a way around a step": SUM.replace("; st.", "; D: st.").replace(";  add", "; setp.ne.u32 %p1, %r1, 0; @%p1 bra D; add", 1),
    "a step that some lanes make": SUM.replace("st.", "setp.ne.u32 %p1, %r1, 0; @%p1 bra M; xor.b32 %r4, %r4, %r1; M: st."),
    "products": reals("mul.f32 %r4, %r4, %r4;"),
    "negated products": reals("mul.f32 %r11, %r4, %r4; neg.f32 %r4, %r11;"),
    "moved products": reals("mul.f32 %r11, %r4, %r4; mov.b32 %r4, %r11;"),
    "reals of another block": reals("@%p1 bra O; mov.u32 %r9, 0; O:"),
    "a vector": SUM.replace("st.shared.u32 [%r7], %r4", "st.shared.v2.u32 [%r7], {%r4, %r4}"),
    "a carry": steps(operation="add.cc.u32"),
}


def is_same(body: str, text: str = KERNEL) -> bool:
    (function,) = parse(text.replace("BODY", body)).functions
    store = next(each for each in function.instructions() if each.parts[:2] == ("st", "shared"))
    return ExchangedValues(function).is_same(store, store.operands[1])


@pytest.mark.parametrize("name", EQUAL)
def test_equal(name: str) -> None:
    assert is_same(EQUAL[name])


@pytest.mark.parametrize("name", DIFFER)
def test_may_differ(name: str) -> None:
    assert not is_same(DIFFER[name])


def test_values_that_are_used_twice_at_each_of_many_steps() -> None:
    """Each step is looked at once, and not once for each way to it."""
    steps_before = "add.u32 %r4, %r4, %r4; " * 5000
    assert is_same(f"ld.global.u32 %r4, [%d4]; {steps_before} {SUM}")
    assert not is_same(f"ld.global.u32 %r4, [%d4]; {steps_before} st.shared.u32 [%r7], %r4;")


@pytest.mark.parametrize(("old", "new"), [(".reqntid 64, 1, 1", ""), ("64, 1, 1", "40, 1, 1"), (".visible .entry", ".visible .func")])
def test_warps_may_lack_lanes_or_the_function_is_called(old: str, new: str) -> None:
    assert not is_same(SUM, KERNEL.replace(old, new, 1))


def launched(body: str, odd: int = ODD) -> Report:
    """The data of one CTA differ from lane to lane."""
    data = np.zeros((CTAS, 64), np.uint32)
    data[odd] = np.random.default_rng(1).integers(0, 1 << 20, 64)
    kernel = consan.Kernel(KERNEL.replace("BODY", body), "k")
    return consan.launch(kernel, CTAS, 64, [data, np.zeros((CTAS, 64), np.uint32)], device="cpu", engine="record", global_memory="off")


def decided(monkeypatch: pytest.MonkeyPatch, body: str) -> tuple[str, bool]:
    """The verdict, and whether equality of stored values decides it."""
    by_value, known = list[bool](), recorder.Known
    monkeypatch.setattr(recorder, "Known", lambda *given: by_value.append(given[3]) or known(*given))
    return launched(body).verdict, any(by_value)


def test_the_sum_of_all_lanes_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    report = launched(SUM)
    assert (report.verdict, [(each.kind, each.severity) for each in report.findings]) == ("clean", [("data-race", "note")])
    assert decided(monkeypatch, SUM) == ("clean", False)


@pytest.mark.parametrize("name", ["a step is missing", "differences"])
def test_what_may_differ_is_found_in_the_cta_that_differs(name: str) -> None:
    report = launched(DIFFER[name])
    errors = [each for each in report.findings if each.severity == "error"]
    assert report.verdict == "violations"
    assert {access.block for each in errors for access in each.pair} == {(ODD, 0, 0)}


def test_two_warps_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a sum that all its lanes have: they store it to one place."""
    body = SUM.replace("[%r7]", "[sums]")
    assert decided(monkeypatch, body) == ("violations", True)


FAULTS = {
    "any operation": ("if not takes_either_order(made) or", "if", "differences"),
    "products": (" and not self._is_rounded(taken, self.steps[taken], source)", " and False", "products"),
    "any step": ("return self._group[taken] | _moved(self._group[taken], distance)", "return _ALL_LANES", "a step is missing"),
    "any operand": ("found &= self.group(at, made, each)", "found |= self.group(at, made, each)", "the number of the lane behind"),
    "the own value may change": ("if unchanged and", "if", "the own value changes"),
    "any mask": ("mask & _ALL_LANES != _ALL_LANES", "False", "fewer lanes"),
    "any clamp": ("clamp != _CLAMP or ", "", "half of a warp"),
    "guards": ("last is None or self.steps[last].predicate is not None", "last is None", "a guard"),
    "loops": (" or self._graph.repeats(node)", "", "a loop"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, name = FAULTS[fault]
    plant(monkeypatch, exchanged, old, new)
    with pytest.raises(AssertionError):
        test_may_differ(name)


def test_the_cta_that_differs_is_not_looked_at_if_all_count_as_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, exchanged, "ways[node].group(ways[node].places[store.start], store, value) == _ALL_LANES", "True")
    assert launched(DIFFER["a step is missing"] + " // planted").verdict == "clean"
