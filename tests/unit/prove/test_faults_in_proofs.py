"""Faults planted in the rules of `consan prove`: with each of them, a kernel is proven that has no proof."""

from __future__ import annotations

from types import ModuleType

import pytest

pytest.importorskip("z3", reason="the solver is in the extra `prove`")

from planted import plant
from proof_cases import RACES, UNKNOWN, answer, kernel as text
from ring_cases import UNPROVEN, proves

from consan.instrument.isa import queries
from consan.prove import copies, environment, intervals, kernel, numbers, operations, pairs, proof, step, tables, uniform, walk
from consan.prove.loads import read_only, unused
from consan.prove.loops import arms, ends, forms, leaving, listed
from consan.prove.phases import arrays, counters, model, order, products, proxies, warps

# A rule, its module, the fault, and a case that is proven with it.
FAULTS: dict[str, tuple[ModuleType, str, str, str]] = {
    "what threads do before they leave": (leaving, "frozenset(behind | before)", "frozenset(behind)", "a store of threads that leave"),
    "what threads do as they leave": (
        leaving, "frozenset(behind | before)", "frozenset(before)", "a store behind a branch out of the kernel",
    ),
    "half of an address": (operations, "(bits >= least and ", "(", "an address of 16 bits of 64"),
    "numbers that shifts cut": (
        numbers, " or self.factor(value.term) % (1 << bits - _SHORT) == 0", "", "a number that two shifts cut",
    ),
    "bits of large numbers": (operations, "and not bits & others", "", "bits that two large numbers share"),
    "products behind writes": (
        intervals, "return one.place[0] in self._behind[node]", "return False", "a product of what is written without a fence",
    ),
    "products of a later round": (
        intervals, "behind(self._edges, [node])", "behind(self._cut, [node])",
        "a product of what the round before has written without a fence",
    ),
    "products behind a barrier": (
        intervals, "(each.writes or each.is_operand)", "each.writes", "a product that is waited for behind a barrier",
    ),
    "the last bytes of an operand": (products, "found.span(form) + 8 * CHUNK * found.width", "found.span(form)", "the last bytes of A"),
    "distances in an operand": (
        products, "nbytes = found.span(form) +", "nbytes =", "the last line of a swizzled operand",
    ),
    "operands in their variables": (proof, "if access.is_operand and", "if False and", "an operand behind its variable"),
    "addresses in units of 16 bytes": (
        products, "if symbols.shared.aligned.get(address.base[1], 1) < CHUNK:", "if False:",
        "an operand that its variable's alignment does not place",
    ),
    "addresses without some bits": (
        products, "or symbols.shared.aligned.get(base[1], 1) < low", "", "bits of an address that its variable's alignment does not give",
    ),
    "groups of products": (
        counters, "else ProductCommit if row.is_product else None", "else CopyCommit if row.is_product else None",
        "a wait for copies behind a product",
    ),
    "commits behind a copy": (copies, "(commit, 0))}", "(commit, 1))}", "the last group"),
    "copies without a group": (copies, "(commit, 0))}", "(commit, 1))}", "a copy without a group"),
    "groups that a wait leaves": (copies, "commits > left", "commits >= left", "the last group"),
    "groups with a guard": (copies, "elif step.guard is None:", "else:", "a group with a guard"),
    "waits with a guard": (copies, "elif step.guard is None:", "else:", "a wait with a guard"),
    "commits where paths join": (copies, "flight: min(", "flight: max(", "a group of one path"),
    "copies behind a barrier": (intervals, "        if copies:", "        if False:", "a copy behind a barrier"),
    "copies behind two barriers": (intervals, "self._follow(here, left, found, barriers + 1)", "pass", "a copy behind two barriers"),
    "copies of others, later": (
        intervals, "yield from _raced(AccessPair(copy, other, INTERVAL))", "pass", "a neighbour's copy behind a barrier",
    ),
    "copies of a thread": (
        intervals, "if copy.flight in here.progress", "if copy.flight not in here.progress", "a copy that its thread reads early",
    ),
    "copies of a thread, later": (
        intervals, "if copy.flight in behind.progress", "if None in behind.progress", "a copy that its thread reads early behind a barrier",
    ),
    "copies at the end": (intervals, "found.unfinished += [", "_ = [", "a copy that nobody waits for"),
    "how far copies are followed": (
        intervals, "if reached and barriers == MOST_BARRIERS:", "if False:", "a copy in flight through many barriers",
    ),
    "barriers of all threads": (intervals, "if self._in_arms and (lines :=", "if False and (lines :=", "a barrier of some threads"),
    "threads at two barriers": (
        arms, "for its in behind[other])", "for its in behind[other] if its == each)", "a read behind one of two barriers",
    ),
    "threads behind two barriers": (
        arms, "seen.add(pair)\n            pending +=", "seen.add(pair)\n            pending += () if one != FIRST else",
        "a read before a barrier of the other arm",
    ),
    "an arm that leaves": (arms, "in seen | set(_alone(left, behind))", "in seen", "a store of an arm that leaves"),
    "rounds of a loop": (listed, "= 1 + bisect_left(", "= bisect_left(", "permuted places that meet in the last round"),
    "bytes of a place in rounds": (listed, "range(self.nbytes)", "range(1)", "a half of another thread's permuted place"),
    "branches that do not part a warp": (warps, "(lanes == lanes[:, :1]).all()", "True", "a barrier of half a warp in rounds"),
    "copies in flight at a barrier of the warp": (
        warps, "and one.flight not in progress.before(", "and True or (", "a copy of a warp before a barrier and behind it",
    ),
    "branches to other barriers": (
        uniform, "return node in self._staying and len(stay) < 2 and (", "return True or (", "a barrier of some threads",
    ),
    "threads that never come to a branch out of the kernel": (
        uniform, "return branch in self.divergent_nodes or (", "return (", "a store of an arm that launches leave",
    ),
    "branches to several barriers": (uniform, "len(stay) < 2 and", "", "barriers of several arms, beside one that leaves"),
    "bits that a descriptor has": (operations, " | fields_of(address)", "", "a descriptor with one bit twice"),
    "other iterations": (
        pairs, "_of_thread(each, 2) for each in one", "_of_thread(each, 1) for each in one", "copies of rounds at one place",
    ),
    "conditions of the iteration before": (
        numbers, "[(number, count.term - 1)]", "[(number, count.term)]", "a condition of the round before",
    ),
    "what the first iteration begins with": (
        forms, "return choice(begins, self.first, ", "return choice(z3.BoolVal(False), self.first, ", "rows of threads that may be empty",
    ),
    "waits for groups of one kind": (
        copies, "return commit is GROUPS[wait.kind] and", "return", "a bulk store that no wait of its kind is for",
    ),
    "groups of one kind": (copies, "number + (commit is made.kind)", "number + 1", "a bulk store in no group of its kind"),
    "waits for what is read": (copies, "not (reads_only and written)", "True", "a bulk store that its thread loads back too early"),
    "writes behind no proxy fence": (proxies, "and written not in self._unfenced", "", "a bulk store without a proxy fence"),
    "writes of others behind no proxy fence": (
        intervals, "if not fences.follow(other):", "if False:", "a bulk store of what others write without a proxy fence",
    ),
    "proxy fences with a guard": (
        proxies, "if step.guard is None else frozenset[str]()", "", "a bulk store behind a fence of some threads",
    ),
    "memories of proxy fences": (proxies, "if each[-1] not in fenced", "if not fenced", "a bulk store behind a fence of the other memory"),
    "bulk stores before a fence": (
        proxies, "self.follow(write) and", "self.follow(write) or", "a bulk store before the fence of its thread",
    ),
    "proxy fences before a copy ends": (
        proxies, "not write.is_copy and", "", "a bulk store of what a copy brings behind the fence",
    ),
    "bulk stores at the end": (
        intervals, "and each.writes != each.is_bulk_store", "and each.writes > each.is_bulk_store",
        "a bulk store that may read when the CTA has ended",
    ),
    "copies of later intervals": (pairs, "and not pair.later", "", "copies of rounds at one place behind a barrier"),
    "lanes of one row": (pairs, "and self.first.place != self.second.place", "and False", "rows of a matrix in a warp"),
    "lanes of the words of a row": (pairs, "if how is MatrixRow.WORDS else", "if how else", "words of rows that another lane gets"),
    "lanes of the halves of a row": (
        pairs, "+ row / z3.IntVal(2)", "+ (row + 6) / z3.IntVal(2) % 4", "halves of rows that another lane gets",
    ),
    "lanes that give a row": (pairs, "either(first != second, both(*once))", "first != second", "a row that one instruction stores twice"),
    "lanes that come to a row in different rounds": (pairs, "if self.together(", "if (True, ", "rows in rounds that part lanes"),
    "rows that copies fill": (pairs, "each.own or each.is_copy", "each.own", "a copied word of a row that a lane gets"),
    "accesses of two CTAs": (proof, "AccessPair(one, other, GRID)", "AccessPair(one, other, CTA)", "elements of two CTAs"),
    "accesses of two threads": (
        intervals, "found.pairs += _raced(AccessPair(one, other, INTERVAL, in_warps=", "bool((", "a neighbour's element",
    ),
    "sizes that differ": (
        pairs, "one == other if aligned and size == other_size else", "one == other if aligned else", "a half of a neighbour's element",
    ),
    "sizes of pieces": (
        pairs, "aligned=pair.first.is_aligned and pair.second.is_aligned", "aligned=True", "a piece that reaches another CTA's",
    ),
    "sizes of bulk copies": (step, "self.element != 0 and not self.late", "self.element != 0", "bulk copies that overlap"),
    "numbers below zero": (operations, ', "relu"})', "})", "numbers below zero as zero"),
    "constants that wrap": (step, "if value.constant is not None:", "if False:", "a constant that wraps"),
    "addresses that wrap": (step, "elif not within(offset.small, _ADDRESSES)", "elif False", "an address that wraps"),
    "numbers that are narrowed": (numbers, "bits < _WORD or self.factor(", "bits >= _WORD and self.factor(", "half of a number"),
    "numbers that are stepped over": (ends, "goal % size != 0, ", "", "rounds that step over a number"),
    "what ends rounds": (
        ends, "size * count == goal], _SECONDS) is False", "], _SECONDS) is not False", "rounds that may go on behind a number",
    ),
    "strong accesses that differ": (pairs, " and alike)", ")", "one strong word beside a strong vector"),
    "packed types": (queries, '.endswith("x2")', '.endswith("x9")', "an atomic of two halves beside one of a word"),
    "scopes": (pairs, 'else ("gpu", "sys")', 'else ("cta", "gpu", "sys")', "an atomic of the CTA"),
    "loads that see no writes": (
        step, "row.is_matrix_access or is_noncoherent(instruction)", "row.is_matrix_access", "a load of an own element that sees no writes",
    ),
    "matrices of a warp": (
        step, "row.is_matrix_access or is_noncoherent(instruction)", "is_noncoherent(instruction)", "rows of a matrix in a warp",
    ),
    "mbarriers that begin": (step, "row.is_mbarrier and not (", "row.is_mbarrier and (True or ", "an mbarrier beside its initialisation"),
    "barriers of other numbers": (kernel, "if name.value != 0:", "if False:", "a barrier of another number"),
    "barriers with a guard": (kernel, "if instruction.predicate is not None:", "if False:", "a barrier with a guard"),
    "functions that write": (kernel, "any(each.writes for each in visible) or", "", "a function that stores"),
    "functions that load": (kernel, " or (visible and not loads)", "", "a function that loads where the kernel writes"),
    "what functions do": (kernel, "return known and not (", "return not (", "a function with a barrier"),
    "functions that are not known": (kernel, "is not None and name not in bodies and", "is None and", "a function without a text"),
    "what functions return": (uniform, " and self._is_of_kernel(instruction)", "", "a barrier behind a returned number"),
    "names of parameters": (kernel, "if shared := own.inter", "if shared := set().inter", "a result with the name of a parameter"),
    "addresses of parameters": (kernel, "if named and not (", "if False and not (", "a result by its address"),
    "loaded values": (
        uniform, "self._read_only) and self._reads_uniform(instruction)", "self._read_only)", "a barrier behind a loaded flag",
    ),
    "what nobody writes": (
        read_only, "if bases and not bases & written_bases", "if bases", "a barrier behind a flag in an array that is written",
    ),
    "loaded values of rounds": (step, "self.uniform_loads and not self.repeats", "self.uniform_loads", "places beside one of each round"),
    "code that no thread comes to": (pairs, "if name not in self._symbols.assumed for", "for", "code behind an overflow"),
    "stores of a loaded value": (unused, "if bit & mask)", "if bit & mask & 1)", "loads of some use in another store"),
    "iterations of threads": (walk, "self._shares and self._uniform", "self._uniform", "rounds of one thread beside those of another one"),
    "the iteration before": (numbers, "[(number, count.term - 1)]", "[(number, count.term)]", "the last one of some rounds"),
    "stages that go round": (
        forms, "after.term != cycle.term(count + 1)", "z3.BoolVal(False)", "stages that go round at another speed",
    ),
    "numbers that others divide": (numbers, "if self.factor(each) % by]", "if False]", "bits that are set"),
    "parts of a number": (
        operations,
        "times(op.symbols.quotient(upper, 1 << begin), number(1 << begin))",
        "upper",
        "a number in two parts, without a bit",
    ),
    "numbers that divide an assumed one": (
        numbers, "= line, self.factor(value.term)", "= line, 2", "the last bit of a number of more bits",
    ),
    "tables of two threads": (tables, "(~one_thread & others)", "(one_thread & others)", "a neighbour's element"),
    "tables of a thread": (tables, "(one_thread & same)", "(~one_thread & one_thread)", "a copy that its thread reads early"),
    "sizes in tables": (tables, "first < second + other_size", "first <= second", "a half of a neighbour's element"),
    "what is no number of a thread": (pairs, "if one.rest == other.rest and", "if True or", "a neighbour's element of another round"),
    "barriers of half a warp": (
        kernel, " and int(mask.value) & _ALL_LANES == _ALL_LANES", "", "a barrier of half a warp",
    ),
    "barriers that lanes may meet before": (warps, " and is_of_all_lanes(each)", "", "a barrier of the warp that some lanes meet before"),
    "barriers of warps with a guard": (
        kernel, "instruction.predicate is None and isinstance(mask", "isinstance(mask", "a barrier of the warp with a guard",
    ),
    "barriers of warps that all reach": (warps, "uniform.is_uniform(node) and", "", "a barrier of the warp that some threads reach"),
    "barriers of warps in rounds": (warps, "if node not in after]", "]", "a barrier of the warp in rounds"),
    "threads of a warp in rounds": (intervals, "self._within_warps(root, state, found)", "pass", "a barrier of the warp in rounds"),
    "intervals of a warp": (intervals, "            roots += [", "            _ = [", "a barrier of the warp in rounds"),
    "warps in rounds": (
        intervals, "AccessPair(one, other, INTERVAL, in_warps=in_warps)", "AccessPair(one, other, INTERVAL, one_warp=in_warps)",
        "barriers of the warp in rounds, between two warps",
    ),
    "barriers of half a warp in rounds": (
        kernel, " and int(mask.value) & _ALL_LANES == _ALL_LANES", "", "barriers of the warp in rounds, one of half a warp",
    ),
    "copies in rounds of a warp": (
        intervals, "divide &= all(map(is_plain, whole.accesses))", "divide &= True", "barriers of the warp in rounds, behind a copy",
    ),
    "before a barrier of the warp": (
        warps, "before not in self._after[node]", "True", "a barrier of the warp in a node before both",
    ),
    "behind a barrier of the warp": (warps, " and view.dominates(node, behind)", "", "a barrier of the warp on one path"),
    "places beside a barrier of the warp": (warps, "and behind != node", "", "a barrier of the warp behind both"),
    "copies at a barrier of the warp": (
        warps, "and one.flight not in progress.before((node, len(self._graph.nodes[node].steps) - 1))", "",
        "a barrier of the warp behind a copy",
    ),
    "warps in tables": (tables, "found &= warp[:, None] != warp[None, :]", "found &= False", "a barrier of the warp between two warps"),
    "warps in questions": (
        pairs, "return self._warp(1) != self._warp(2)", "return z3.BoolVal(False)", "a barrier of the warp between two warps",
    ),
    "fields of a parameter": (environment, "offset + size * place", "offset", "places from two fields"),
    "bits": (operations, '"or": 1, "xor": 2', '"or": 2, "xor": 2', "bits that are set"),
}  # fmt: skip
# The same for rings: the cases are those of ring_cases.py.
OF_PHASES: dict[str, tuple[ModuleType, str, str, str]] = {
    "arrivals that are counted": (model, "0 < threads.sum() <= array.count", "0 < threads.sum()", "more threads than an mbarrier counts"),
    "bytes that are expected": (model, "both(fits, followed.arrives)", "followed.arrives", "more bytes than are copied"),
    "waits before arrivals": (model, ">= arrived + lead", ">= 0", "a stage that is handed back before it is full"),
    "mbarriers that are begun": (
        arrays,
        "return set(range(array.low",
        "return 1 or set(range(array.low",
        "an mbarrier that is not initialised",
    ),
    "arrivals in turn": (
        model,
        "if _arrives_in_turn(model, each)]",
        "if each or _arrives_in_turn(model, each)]",
        "a writer that arrives without a wait",
    ),
    "the phase before an arrival": (model, "model.knows(followed, terms(each), before)", "True", "a writer that arrives without a wait"),
    "parities": (model, "wait.measure.term == parity.term, _SECONDS", "True, _SECONDS", "a wait with the other parity"),
    "places in an array": (model, "if array.objects == 1:", "if array.objects:", "a wait at the other mbarrier"),
    "proxies alone": (order, "if other.late and one.writes:", "if False:", "a stage that its readers write"),
    "waits for the phase before": (model, "- 1 - self.lag", "- 1", "a stage that is handed back too early"),
    "what others waited for before": (model, "+ lead - 1 - followed.lag", "+ lead - 1", "readers that write beside each other"),
    "counters of no wait": (model, "both(waited >= 0, waited + lead", "both(True, waited + lead", "writers that read beside each other"),
    "groups before an arrival": (order, "if commit is None:", "if True:", "an arrival before the wait for a cp.async"),
    "the group of an arrival": (order, "].term + 1 - lead", "].term - lead", "a wait that leaves the group of an arrival"),
    "threads that arrive": (order, "both(arrives, self._model", "both(self._model", "a reader that does not arrive"),
    "pairs of proxies": (
        intervals,
        "if not one.late or not other.writes or",
        "if True or",
        "a stage that was written before, without a fence",
    ),
    "copies at the end of a ring": (
        order,
        "if questions.reach(",
        "if False and questions.reach(",
        "copies that nobody waits for at the end",
    ),
    "waits that are over": (
        walk,
        "_SECONDS) is not False:\n            return left",
        "_SECONDS) is None:\n            return left",
        "waits that give up",
    ),
}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_in_a_rule(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, case = FAULTS[rule]
    plant(monkeypatch, module, old, new)
    assert answer({**RACES, **UNKNOWN}[case]).answer == proof.PROVEN


@pytest.mark.slow
@pytest.mark.parametrize("rule", OF_PHASES)
def test_a_fault_in_a_rule_of_phases(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, case = OF_PHASES[rule]
    plant(monkeypatch, module, old, new)
    assert proves(UNPROVEN[case])


def test_a_fault_in_the_axes_with_one_cta(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, environment, "extent == 1 and ", "")
    assert answer(text("st.global.u32 [%rd4], %r3;", "1, 2")).answer == "proven"


def test_a_fault_in_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """All CTAs store one word in a grid of 5, which has no whole clusters of 4."""
    never = text("mov.u32 %r7, %nctaid.x;\nsetp.eq.s32 %p1, %r7, 5;\n@%p1 st.global.u32 [%rd1], %r3;", "4")
    assert not answer(never).conflicts
    plant(monkeypatch, environment, "found.term % cluster == 0", "found.term >= 0")
    assert answer(never).conflicts
