"""Faults planted in the checker's rules for tensor memory change what is found in a kernel of tests/kernels/blackwell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import twin_file
from planted import break_checker, quick

import consan
from consan.backends.cpu.state.mbarriers import TX_MASK, MBarriers
from consan.checker.compiled import build, replay
from consan.instrument.record.families import launch_control

KERNELS = Path(__file__).parents[1] / "kernels" / "blackwell"
ORDER, MEMORY, LAUNCHES, OPERATIONS = "tensor_order.hpp", "tensor_memory.hpp", "launch_control.hpp", "operations.hpp"
COLLECTORS, PROXIES, CLOCKS, MBARRIERS = "tensor_collectors.hpp", "proxies.hpp", "clocks.hpp", "mbarriers.hpp"
# The file, what is replaced by what, and a twin that is reported only with the rule, or is clean only with it.
RULES = {
    "completion": (ORDER, "        if (issuers_.complete(old.ticket, now.thread)) return true;\n", "", "load_not_waited", False),
    "operations that come before their operands": (ORDER, "now.writes && read_unwritten(item)", "false", "store_overtaken", True),
    "commits that tell": (ORDER, "adds && !issuers_.informed(item.access.ticket, now.thread)", "adds", "columns_not_released", True),
    "stores that come too early": (ORDER, " || all.refills(item, now); }", "; }", "operand_stored_again_early", True),
    "halves that are given back": (
        ORDER,
        "use.pipelined() || !each.piece.meets(piece)",
        "use.pipelined() || !each.piece.meets(item.piece)",
        "half_released_early",
        True,
    ),
    "rows that move": (MEMORY, ", left.writes = form & SHIFTED", "", "shifted_operand_loaded", True),
    "the metadata of a selector": ("tensor_shapes.hpp", "(wide == 1 ? descriptor_ & 1 : 0)", "0", "sparse_metadata_pending", True),
    "stores": ("tensor_memory.hpp", "wait.what() == 1 ? BY_WAIT_LD : BY_WAIT_ST", "BY_WAIT_LD", "store_pending", False),
    "unwritten": (ORDER, "if (access.reads) check_written(access, piece);", "", "accumulate_unwritten", True),
    "by the ISA: fences": (ORDER, "issuers_.fenced(old.ticket, now.thread)", "true", "isa_no_tcgen05_fence", True),
    "by the ISA: later allocations": (ORDER, " && access.number == dealloc.number;", ";", "isa_pair_dealloc", False),
    "by the ISA: fences of commits": ("issuers.hpp", "memory) <= ticket.number", "memory) <= NOTHING", "isa_write_behind_commit", False),
    "loads replace": (OPERATIONS, "return all.replaced(made, use, old, time);", "return false;", "clean_pair_word_overwritten", False),
    "pairs allocate together": ("tensor_allocations.hpp", "(made.other != NOTHING &&", "(false &&", "clean_pair_alloc", False),
    "allocs behind relaxed barriers": (
        "tensor_allocations.hpp",
        " || clocks_.executed(thread, other) >= time;",
        ";",
        "pair_relaxed_barriers",
        True,
    ),
    "deallocs behind relaxed barriers": (
        ORDER,
        "if (now.kind == NO_OPERATION && issuers_",
        "if (false && issuers_",
        "pair_relaxed_barriers",
        False,
    ),
    "fences of issue": (ORDER, "if (fence || !in_issue_order", "if (true || !in_issue_order", "relaxed_issue_no_fence", True),
    "commits on their way": (
        MBARRIERS,
        "else if (object->commit.site &&",
        "else if (false && object->commit.site &&",
        "inval_commit_pending",
        True,
    ),
    "waits that are over": (MBARRIERS, " || clocks_.executed(thread, wait.thread) >= wait.time", "", "inval_behind_relaxed_barrier", False),
    "other data": (CLOCKS, "++time_[thread];\n        ++warp_time_[thread / LANES];\n        return", "return", "launch_other_data", True),
    "responses": (OPERATIONS, "bool by_phase() const { return brings() ||", "bool by_phase() const { return", "launch_not_waited", True),
    "slots": (
        OPERATIONS,
        "return mbarriers_.nothing_since(",
        "return load.kind != LAUNCH_REQUEST_OPERATION && mbarriers_.nothing_since(",
        "launch_slot_not_free",
        True,
    ),
    "requests in one slot": (OPERATIONS, "return !requests && is_behind()", "return is_behind()", "launch_two_in_one_slot", True),
    "order of a refusal": (LAUNCHES, "if (clocks_.before(each.thread, each.time, thread)) {", "{", "clean_launch_two_slots", False),
    "other CTAs": ("asynchronous.hpp", "if (copy.ctas() >> cta & 1)", "if (cta == shape_.home(thread))", "launch_before_peer", True),
}
QUICK = ("stores",)
for rule in QUICK:
    quick(*RULES[rule][:3])


def _found(name: str, racy: bool) -> set[tuple[Any, ...]]:
    spec = twin_file.read(KERNELS / f"{name}.cu")
    kernel = twin_file.kernel(spec.path, racy)
    args = spec.parameters(spec.fresh_args())
    report = consan.launch(kernel, spec.grid, spec.block, args, device="cpu", engine="record", policy=spec.policy)
    return {(one.kind, one.severity, tuple(access.line for access in one.pair)) for one in report.findings}


def test_each_fault_changes_text_that_is_there() -> None:
    sources = build.sources()
    assert [rule for rule, (file, old, *_) in RULES.items() if sources[file].count(old) != 1] == []


@pytest.mark.parametrize("fault", [pytest.param(RULES[rule], id=rule, marks=[] if rule in QUICK else pytest.mark.slow) for rule in RULES])
def test_a_fault_in_a_rule(fault: tuple[str, str, str, str, bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file, old, new, name, racy = fault
    right = _found(name, racy)
    break_checker(monkeypatch, tmp_path, (replay,), file, old, new)
    assert _found(name, racy) != right


def test_bytes_that_a_cta_does_not_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-C6 is decided by the virtual machine: each mbarrier counts the bytes that come to its own CTA."""
    right, complete = _found("launch_bytes_not_expected", True), MBarriers.completion

    def forgiving(self: MBarriers, unit: int, nbytes: int) -> Any:
        return lambda: complete(self, unit, nbytes)() if int(self.words[unit]) & TX_MASK else self.signal(unit, arrivals=1)

    monkeypatch.setattr(MBarriers, "completion", forgiving)
    assert {kind for kind, *_ in right} == {"deadlock"}
    assert _found("launch_bytes_not_expected", True) != right


def test_arithmetic_that_selects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-C5: an id that is joined with other bits of an address is still shown by the access."""
    right = _found("launch_tile_of_refusal", True)
    monkeypatch.setattr(launch_control, "selects", lambda instruction, row: row is not None and row.name in ("selp", "and", "or", "slct"))
    text = twin_file.kernel(KERNELS / "launch_tile_of_refusal.cu", True).ptx + "\n// broken\n"
    spec = twin_file.read(KERNELS / "launch_tile_of_refusal.cu")
    made = consan.Kernel(text, entry="kernel")
    report = consan.launch(made, spec.grid, spec.block, spec.parameters(spec.fresh_args()), device="cpu", engine="record")
    assert "clc-misuse" in {kind for kind, *_ in right}
    assert "clc-misuse" not in {one.kind for one in report.findings}
