"""What the text of a kernel tells of two accesses: their order, and what synchronises between, before and after them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted import plant

from consan.instrument.between import TextRelations, data, flow
from consan.instrument.ptx import parse
from consan.instrument.relations import Order, Stretches, SyncPoint, Threads
from consan.instrument.sites import Site

HEAD = ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .pred %p<9>;\n.reg .b32 %r<9>;\n"
WRITE, READ = "st.shared.u32 [%r1], %r2;", "ld.shared.u32 %r3, [%r1];"
THREADS: Threads = ((0, 0, 0), (40, 0, 0))


def site(text: str, instruction: str, occurrence: int = 0, function: str = "k") -> Site:
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line == instruction]
    access = "write" if instruction.startswith("st") else "read"
    return Site(1, function, instruction.split()[0], "load", access, "shared", 4, lines[occurrence], instruction)


def kernel(*lines: str) -> tuple[TextRelations, Site, Site]:
    """A kernel of these lines, and its write and its read."""
    text = HEAD + "\n".join(lines) + "\nret;\n}\n"
    return TextRelations(lambda: parse(text, "k.ptx")), site(text, WRITE), site(text, READ)


LOOP_TOP, LOOP_END = "LOOP:", "@%p1 bra LOOP;"
BARRIER = "bar.sync 0;"
FORWARD, BACKWARD = Order(swapped=False), Order(swapped=True)
NEXT = {name: Order(swapped, carried=True) for name, swapped in (("write first", False), ("read first", True))}


@pytest.mark.parametrize(
    ("lines", "order"),
    [
        ((WRITE, READ), FORWARD),
        ((READ, WRITE), BACKWARD),
        ((LOOP_TOP, WRITE, READ, LOOP_END), FORWARD),
        ((LOOP_TOP, READ, WRITE, LOOP_END), NEXT["write first"]),  # values go from writes to reads
        ((LOOP_TOP, WRITE, BARRIER, READ, LOOP_END), NEXT["read first"]),
        ((LOOP_TOP, READ, BARRIER, WRITE, LOOP_END), NEXT["write first"]),
        ((LOOP_TOP, READ, WRITE, BARRIER, LOOP_END), BACKWARD),
        ((LOOP_TOP, WRITE, "bar.sync 1, 64;", READ, LOOP_END), FORWARD),  # not a barrier of all threads
        ((LOOP_TOP, WRITE, "@%p2 bar.sync 0;", READ, LOOP_END), FORWARD),
        (("@%p1 bra ELSE;", READ, "bra END;", "ELSE:", WRITE, "END:"), FORWARD),  # a thread takes one of the branches
        ((LOOP_TOP, "@%p2 bra ELSE;", READ, "ret;", "ELSE:", WRITE, LOOP_END), FORWARD),  # the read ends the kernel
        ((LOOP_TOP, "@%p2 bra ELSE;", READ, "bra END;", "ELSE:", WRITE, "END:", BARRIER, LOOP_END), FORWARD),  # in one iteration
        ((LOOP_TOP, "@%p2 bra ELSE;", WRITE, "bra END;", "ELSE:", READ, "END:", BARRIER, LOOP_END), FORWARD),
    ],
)
def test_order(lines: tuple[str, ...], order: Order) -> None:
    relations, write, read = kernel(*lines)
    assert relations.order(write, read, "cta") == order
    found = relations.order(read, write, "cta")
    assert found is not None
    assert (found.swapped, found.carried) == (not order.swapped, order.carried)


def test_the_barriers_of_the_pair_decide() -> None:
    relations, write, read = kernel(LOOP_TOP, WRITE, "bar.warp.sync -1;", READ, LOOP_END)
    assert relations.order(write, read, "warp") == NEXT["read first"]
    assert relations.order(write, read, "cta") == FORWARD


def test_one_store_may_come_before_itself_in_a_loop() -> None:
    lines = {LOOP_TOP: NEXT["write first"], BARRIER: None, "bar.warp.sync -1;": NEXT["write first"]}
    for line, order in lines.items():
        top = () if line == LOOP_TOP else (LOOP_TOP,)
        relations, write, _ = kernel(*top, line, WRITE, LOOP_END, READ)
        assert relations.order(write, write, "cta") == order
    relations, write, _ = kernel(WRITE, READ)
    assert relations.order(write, write, "cta") is None


def test_what_the_text_does_not_tell() -> None:
    loops = (LOOP_TOP, READ, LOOP_END, "ret;", "OTHER:", WRITE, "@%p2 bra OTHER;")
    relations, write, read = kernel("@%p3 bra OTHER;", *loops)
    assert relations.order(write, read, "cta") is None
    _, elsewhere, _ = kernel("", WRITE, READ)
    assert relations.order(write, Site(**(vars(elsewhere) | {"function": "f"})), "cta") is None
    assert relations.stretches(write, Site(**(vars(elsewhere) | {"ptx_line": 999})), THREADS) is None


BRANCHES = ("@%p1 bra $E;", "and.b32 %r2, %r3, 15;", "bra $S;", "$E:", "or.b32 %r2, %r3, 16;", "$S:", WRITE)
OTHER_VALUE = (*BRANCHES[:4], "mov.u32 %r2, 0;", *BRANCHES[5:])


@pytest.mark.parametrize(
    ("lines", "updates"),
    [
        (("ld.shared.u32 %r3, [%r1];", "add.u32 %r2, %r3, 1;", WRITE), True),
        (("ld.shared.u32 %r3, [%r1];", "add.u32 %r4, %r3, %r5;", "mul.lo.u32 %r2, %r4, %r4;", WRITE), True),
        (("ld.shared.u32 %r2, [%r1];", "$L:", "add.u32 %r2, %r2, %r5;", WRITE, "@%p1 bra $L;"), True),  # summed up in a loop
        (("ld.shared.u32 %r2, [%r1+4];", "$L:", "add.u32 %r2, %r2, %r5;", WRITE, "@%p1 bra $L;"), False),
        (("ld.shared.u32 %r3, [%r1];", *BRANCHES), True),  # each branch changes it
        (("ld.shared.u32 %r3, [%r1];", *OTHER_VALUE), False),  # the value of one branch is another one
        (("mov.u32 %r2, 0;", "$L:", "add.u32 %r2, %r2, %r5;", WRITE, "@%p1 bra $L;"), False),  # the sum begins with a constant
        (("ld.shared.u32 %r3, [%r1+4];", "add.u32 %r2, %r3, 1;", WRITE), False),  # of another element
        (("ld.shared.u32 %r3, [%r1];", "add.u32 %r2, %r5, 1;", WRITE), False),  # the value is another one
        (("ld.shared.u32 %r3, [%r1];", "add.u32 %r1, %r1, 4;", "add.u32 %r2, %r3, 1;", WRITE), False),  # the address has changed
    ],
)
def test_an_update_stores_what_it_has_loaded_and_changed(lines: tuple[str, ...], updates: bool) -> None:
    text = HEAD + "\n".join(("mov.u32 %r1, %r6;", *lines)) + "\nret;\n}\n"
    found = TextRelations(lambda: parse(text, "k.ptx")).updates(site(text, WRITE))
    assert found == ({text.splitlines().index(lines[0]) + 1} if updates else set())


LOOK = "ld.shared.u32 %r3, [%r1];"
TEST = ("setp.ne.s32 %p1, %r3, 0;", "@%p1 bra $M;", WRITE, "$M:")
BEHIND = (LOOK, *TEST[:2], "bar.sync 0;", *TEST[2:])
MET = (LOOK, TEST[0], "@%p1 bra $M;", "mov.u32 %r4, 1;", "$M:", "@%p2 bra $E;", WRITE, "$E:")
WAITED = ("$P:", LOOK, TEST[0], "@%p1 bra $P;", WRITE)
POLL = ("@%p2 bra $W;", "$P:", LOOK, TEST[0], "@!%p1 bra $P;", "bra $E;", "$W:", WRITE, "$E:")


@pytest.mark.parametrize(
    ("lines", "checks"),
    [
        ((LOOK, *TEST), True),
        (("ld.shared.u32 %r3, [%r1+4];", *TEST), False),  # of another element
        ((LOOK, "setp.ne.s32 %p1, %r5, 0;", *TEST[1:]), False),  # another value decides
        ((LOOK, TEST[0], WRITE), False),  # nothing depends on it
        (MET, False),  # both ways of the branch lead to the write
        (WAITED, True),  # the one leads back
        (POLL, False),  # no path leads from the look to the write
        (BEHIND, False),  # a barrier lies between: all threads have looked when the first one writes
    ],
)
def test_a_check_decides_whether_its_bytes_are_written(lines: tuple[str, ...], checks: bool) -> None:
    text = HEAD + "\n".join(("mov.u32 %r1, %r6;", *lines)) + "\nret;\n}\n"
    found = TextRelations(lambda: parse(text, "k.ptx")).checks(site(text, WRITE))
    assert found == ({text.splitlines().index(LOOK) + 1} if checks else set())


def test_a_fault_in_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        plant(patch, data, "if loads and self._decides(each, write):", "if loads:")
        with pytest.raises(AssertionError):
            test_a_check_decides_whether_its_bytes_are_written((LOOK, TEST[0], WRITE), checks=False)
    with monkeypatch.context() as patch:
        plant(patch, flow, "if self._reaches(self.on_line(load), self.on_line(line), walls))", ")")
        with pytest.raises(AssertionError):
            test_a_check_decides_whether_its_bytes_are_written(POLL, checks=False)
    with monkeypatch.context() as patch:
        plant(patch, data, "row_of(each).branches and self._turns_away(each, store)", "row_of(each).branches")
        with pytest.raises(AssertionError):
            test_a_check_decides_whether_its_bytes_are_written(MET, checks=False)
    plant(monkeypatch, flow, 'walls = self._walls("cta")', "walls = set()")
    with pytest.raises(AssertionError):
        test_a_check_decides_whether_its_bytes_are_written(BEHIND, checks=False)


SUM = ("$L:", "add.u32 %r2, %r2, %r5;", WRITE, "@%p1 bra $L;")


def test_a_fault_in_sums_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ("ld.shared.u32 %r2, [%r1];", *SUM)
    test_an_update_stores_what_it_has_loaded_and_changed(lines, updates=True)
    plant(monkeypatch, data, "(len(starts) == 1 and row_of(starts[0]).is_load)", "False")
    with pytest.raises(AssertionError):
        test_an_update_stores_what_it_has_loaded_and_changed(lines, updates=True)


@pytest.mark.parametrize(("fault", "lines", "updates"), [("False", BRANCHES, True), ("any(loads)", OTHER_VALUE, False)])
def test_a_fault_in_values_of_branches(fault: str, lines: tuple[str, ...], updates: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ("ld.shared.u32 %r3, [%r1];", *lines)
    test_an_update_stores_what_it_has_loaded_and_changed(lines, updates)
    plant(monkeypatch, data, "None not in loads", fault)
    with pytest.raises(AssertionError):
        test_an_update_stores_what_it_has_loaded_and_changed(lines, updates)


def test_the_copies_of_an_update_in_an_unrolled_loop_are_one() -> None:
    copy = (".loc 1 7 5", READ, ".loc 1 7 5", "add.u32 %r2, %r3, 1;", ".loc 1 7 5", WRITE)
    again = (line.replace("%r3", "%r7").replace("%r2", "%r8") for line in copy)
    text = '.file 1 "k.cu"\n'.join((HEAD.partition(".visible")[0], ".visible" + HEAD.partition(".visible")[2]))
    text += "\n".join(("mov.u32 %r1, %r6;", *copy, *again)) + "\nret;\n}\n"
    store = replace(site(text, WRITE), file="k.cu", line=7, column=5)
    loads = {number for number, line in enumerate(text.splitlines(), 1) if line.startswith("ld.")}
    assert TextRelations(lambda: parse(text, "k.ptx")).updates(store) == loads


@pytest.mark.parametrize(("copies", "order"), [(1, FORWARD), (2, None)])
def test_the_text_does_not_tell_the_order_of_two_branches_with_rounds_that_are_unrolled(copies: int, order: Order | None) -> None:
    reads, writes = ((f".loc 1 {line} 5", each) * copies for line, each in ((7, READ), (8, WRITE)))
    text = '.file 1 "k.cu"\n'.join((HEAD.partition(".visible")[0], ".visible" + HEAD.partition(".visible")[2]))
    text += "\n".join(("@%p1 bra OTHER;", *reads, "ret;", "OTHER:", *writes)) + "\nret;\n}\n"
    read, write = (replace(site(text, each), file="k.cu", line=line, column=5) for line, each in ((7, READ), (8, WRITE)))
    assert TextRelations(lambda: parse(text, "k.ptx")).order(write, read, "cta") == order


def test_a_fault_in_unrolled_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, flow, "self._reaches({vertex}, access, set())", "self._reaches({vertex}, {vertex}, set())")
    with pytest.raises(AssertionError):
        test_the_text_does_not_tell_the_order_of_two_branches_with_rounds_that_are_unrolled(2, None)


SHARED = ".shared .align 4 .b8 tile[256];\n.shared .align 4 .b8 other[256];\n"
INTO = ("mov.u32 %r4, tile;", "add.u32 %r1, %r4, %r5;")


@pytest.mark.parametrize(
    ("lines", "stores"),
    [
        ((*INTO, WRITE, "ld.shared.u32 %r3, [tile+36];"), 1),
        ((*INTO, WRITE, "ld.shared.u32 %r3, [other];"), 0),
        (("ld.shared.u32 %r1, [other];", WRITE, "ld.shared.u32 %r3, [tile];"), None),  # a pointer from memory: it may lead to tile
    ],
)
def test_the_stores_to_a_variable(lines: tuple[str, ...], stores: int | None) -> None:
    text = HEAD.replace("{\n", "{\n" + SHARED) + "\n".join(lines) + "\nret;\n}\n"
    found = TextRelations(lambda: parse(text, "k.ptx")).stores(site(text, lines[-1]))
    assert (None if found is None else len(found.places)) == stores


def around(*lines: str, threads: Threads = THREADS) -> Stretches:
    relations, write, read = kernel(*lines)
    found = relations.stretches(write, read, threads)
    assert found is not None
    return found


def shown(points: tuple[SyncPoint, ...]) -> list[str]:
    return [point.place.ptx.rstrip(";") + ("" if point.always else " ?") for point in points]


def test_what_stands_between_is_in_program_order() -> None:
    found = around(BARRIER, WRITE, "cp.async.commit_group;", "cp.async.wait_group 1;", READ, "fence.proxy.async;")
    assert (found.follows, found.repeats) == (True, False)
    assert shown(found.between) == ["cp.async.commit_group", "cp.async.wait_group 1"]
    assert shown(found.before_first) == ["bar.sync 0"]
    assert shown(found.after_second) == ["fence.proxy.async"]
    assert [point.number and point.number.of(None) for point in found.between] == [None, 1]


def test_the_way_round_a_loop() -> None:
    found = around(LOOP_TOP, "cp.async.wait_group 2;", READ, WRITE, "cp.async.commit_group;", LOOP_END)
    assert found.repeats
    assert shown(found.between) == ["cp.async.commit_group", "cp.async.wait_group 2"]


def test_a_branch_is_not_on_every_path_and_a_guard_neither() -> None:
    found = around(WRITE, "@%p1 bra SKIP;", "bar.sync 0;", "SKIP:", "@%p2 bar.warp.sync -1;", READ)
    assert shown(found.between) == ["bar.sync 0 ?", "@%p2 bar.warp.sync -1 ?"]


BRANCHES = (
    *("mov.u32 %r4, %tid.x;", "shr.u32 %r5, %r4, 5;", "setp.ne.s32 %p1, %r5, 0;", "add.s32 %r6, %r5, 1;", WRITE),
    *("@%p1 bra ELSE;", "bar.sync %r6, 64;", "bra END;", "ELSE:", "bar.arrive %r6, 64;", "END:", READ),
)


def test_a_thread_takes_the_branch_that_its_place_in_the_cta_decides() -> None:
    found = around(*BRANCHES)
    assert shown(found.between) == ["bar.sync %r6, 64 ?", "bar.arrive %r6, 64 ?"]
    (first,), (second,) = found.after_first, found.before_second
    assert (shown((first,)), shown((second,))) == (["bar.sync %r6, 64"], ["bar.arrive %r6, 64"])
    assert first.number is not None
    assert second.number is not None
    assert first.count is not None
    assert (first.number.of(THREADS[0]), second.number.of(THREADS[1]), first.count.of(None)) == (1, 2, 64)
    unknown = around(*BRANCHES, threads=(None, None))
    assert shown(unknown.after_first) == ["bar.sync %r6, 64 ?", "bar.arrive %r6, 64 ?"]


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (("mov.u32 %r4, %tid.x;", "and.b32 %r6, %r4, 7;"), 0),
        (("mov.u32 %r4, %tid.x;", "mul.lo.s32 %r5, %r4, 3;", "sub.s32 %r6, %r5, 119;"), 1),
        (("mov.u32 %r4, %tid.x;", "mad.lo.s32 %r6, %r4, 2, 1;"), 81),
        (("mov.u32 %r4, %ntid.x;", "add.s32 %r6, %r4, 1;"), None),
        (("mov.u32 %r6, 1;", "mov.u32 %r6, 2;"), None),  # written twice
        (("@%p1 mov.u32 %r6, 1;",), None),
    ],
)
def test_operands_are_computed_from_the_thread(lines: tuple[str, ...], value: int | None) -> None:
    (point,) = around(*lines, WRITE, "bar.sync %r6;", READ).between
    assert point.number is not None
    assert point.number.of((40, 0, 0)) == value


def test_a_call_of_something_that_synchronises_hides_what_is_between() -> None:
    callee = ".func f()\n{\nbar.sync 0;\nret;\n}\n"
    text = HEAD.replace(".visible .entry", callee + ".visible .entry") + "\n".join((WRITE, "call f;", READ, "ret;", "}"))
    relations = TextRelations(lambda: parse(text, "k.ptx"))
    assert relations.stretches(site(text, WRITE), site(text, READ), THREADS) is None
    assert relations.order(site(text, WRITE), site(text, READ), "cta") == FORWARD


ONLY_THREAD_0 = ("setp.ne.s32 %p3, %r4, 0;", "mov.u32 %r4, %tid.x;")[::-1]


@pytest.mark.parametrize(
    ("lines", "branches"),
    [
        ((*ONLY_THREAD_0, "@%p3 bra NEXT;", WRITE, "NEXT:", READ), (True, False)),
        ((*ONLY_THREAD_0, WRITE, "@!%p3 bra NEXT;", READ, "NEXT:"), (False, True)),
        ((*ONLY_THREAD_0, "@%p3 bra ELSE;", WRITE, "bra NEXT;", "ELSE:", READ, "NEXT:"), (False, False)),  # no place between
        (("@%p4 bra NEXT;", WRITE, "NEXT:", READ), (False, False)),  # nothing is known of the branch
        ((WRITE, READ), (False, False)),
    ],
)
def test_accesses_in_branches_of_some_threads(lines: tuple[str, ...], branches: tuple[bool, bool]) -> None:
    relations, write, read = kernel(*lines)
    assert relations.in_branches(write, read, THREADS) == branches


FILED = HEAD.replace(".visible", '.file 1 "k.cu"\n.visible')


def loop_at(*lines: str) -> int | None:
    """The source line of the loop around the barrier of a kernel. Each line of PTX has its own source line, counted from 1."""
    text = FILED + "\n".join(f".loc 1 {number} 5\n{line}" for number, line in enumerate(lines, 1)) + "\nret;\n}\n"
    found = TextRelations(lambda: parse(text, "k.ptx")).loop("k", text.splitlines().index(BARRIER) + 1)
    return found.line if found is not None else None


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ((LOOP_TOP, BARRIER, LOOP_END), 3),
        ((LOOP_TOP, "INNER:", BARRIER, "@%p2 bra INNER;", LOOP_END), 4),
        ((LOOP_TOP, "INNER:", "@%p2 bra INNER;", BARRIER, LOOP_END), 5),
        ((LOOP_TOP, "@%p2 bra OUT;", BARRIER, "bra LOOP;", "OUT:"), 4),
        (("@%p1 bra SKIP;", BARRIER, "SKIP:"), None),
        ((LOOP_TOP, LOOP_END, BARRIER), None),
    ],
)
def test_the_line_of_a_loop(lines: tuple[str, ...], line: int | None) -> None:
    assert loop_at(*lines) == line


def test_a_loop_around_two_instructions() -> None:
    lines = (LOOP_TOP, WRITE, "INNER:", READ, "@%p2 bra INNER;", LOOP_END)
    text = FILED + "\n".join(f".loc 1 {number} 5\n{line}" for number, line in enumerate(lines, 1)) + "\nret;\n}\n"
    relations = TextRelations(lambda: parse(text, "k.ptx"))
    write, read = (text.splitlines().index(line) + 1 for line in (WRITE, READ))
    found = [relations.loop("k", *lines) for lines in ((read,), (read, write))]
    assert [loop.line if loop else None for loop in found] == [5, 6]


def test_a_loop_on_the_line_of_the_instruction_is_part_of_the_statement() -> None:
    text = FILED + f"OUTER:\n.loc 1 7 5\n{LOOP_TOP}\n{BARRIER}\n{LOOP_END}\n.loc 1 6 5\n@%p2 bra OUTER;\nret;\n}}\n"
    found = TextRelations(lambda: parse(text, "k.ptx")).loop("k", text.splitlines().index(BARRIER) + 1)
    assert found is not None
    assert found.line == 6
