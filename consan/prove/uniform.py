"""Which registers have one value in all threads of a CTA, and which nodes all of its threads come to equally often.

A node whose branches (control dependence, closed) follow from such registers is reached by all threads in the same order: barriers there
divide the executions of all threads into the same intervals. A register is uniform if all of its writers are in such nodes and compute it
from uniform registers, parameters, the CTA's number and constants, or loads it where nobody writes. Other loaded values, and values of
other lanes, are not uniform.

Barriers do not wait for threads that have left (leaving.py), so branches that only lead out of the kernel may be left out of that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from consan.instrument.control_flow import Graph, Key, key_of, read, written
from consan.instrument.isa import row_of
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Instruction


class Uniformity:
    """Uniform branches of one kernel. `special`: whether a special register has one value in a CTA."""

    def __init__(
        self,
        graph: Graph,
        special: Callable[[str], bool],
        parameters: Collection[str],
        read_only: Collection[int] = (),
        staying: Collection[int] = (),
        whole: Collection[int] = (),
    ) -> None:
        """`parameters`: of the kernel; the result of a function is loaded from a parameter of the call. `read_only`: see read_only.py.

        `staying`: nodes that count for the threads that have not left: no branch to a node outside parts the threads inside.
        `whole`: nodes at whose end no branch parts the threads.
        """
        self._staying, self._whole = staying, whole
        self._graph, self._special, self._parameters, self._read_only = graph, special, parameters, read_only
        self.after = graph.post_dominators
        self._decides = self.after.control_dependence
        self.divergent_keys = set[Key]()
        self.divergent_nodes = {number for number in range(len(graph.nodes)) if not self.after.leads_to_end(number)}
        while self._spreads():
            pass

    def among(self, staying: Collection[int]) -> Uniformity:
        """The same for the threads at some nodes, which have not left."""
        return Uniformity(self._graph, self._special, self._parameters, self._read_only, staying)

    def of_warps(self, whole: Collection[int]) -> Uniformity:
        """The same for the threads of a warp. `whole`: the nodes whose branches do not part a warp."""
        return Uniformity(self._graph, self._special, self._parameters, self._read_only, whole=whole)

    def is_uniform(self, node: int) -> bool:
        """Whether all threads of a CTA come to a node equally often."""
        return node not in self.divergent_nodes

    @property
    def all_stay(self) -> bool:
        """Whether all threads of a CTA count, not only those that have not left."""
        return not self._staying

    def uniform_loads(self) -> frozenset[int]:
        """The loads of memory that give all threads of a CTA one value, by their starts."""
        steps = [step.instruction for number, node in enumerate(self._graph.nodes) if self.is_uniform(number) for step in node.steps]
        return frozenset(each.start for each in steps if each.start in self._read_only and self._is_uniform(each))

    def divides(self, node: int) -> bool:
        """Whether the branch at the end of a node may part the threads of a CTA."""
        last = self._graph.nodes[node].steps[-1].instruction if self._graph.nodes[node].steps else None
        return node in self.divergent_nodes or (last is not None and node not in self._whole and not self._reads_uniform(last))

    def may_leave(self, node: int) -> bool:
        """Whether a thread leaves at a node that counts, or goes to one that does not; all that stay go on in one way."""
        ahead = frozenset(self._graph.successors[node])
        stay = ahead.intersection(self._staying)
        return node in self._staying and len(stay) < 2 and (self._graph.nodes[node].may_leave or stay != ahead)

    def _spreads(self) -> bool:
        """Follow what is divergent by one round. Returns whether anything is new."""
        before = len(self.divergent_keys), len(self.divergent_nodes)
        for number, node in enumerate(self._graph.nodes):
            outside = number in self.divergent_nodes
            for step in node.steps:
                if outside or not self._is_uniform(step.instruction):
                    self.divergent_keys.update(written(step.instruction))
        for number, branches in enumerate(self._decides):
            if any(self._parts(each, number) for each in branches):
                self.divergent_nodes.add(number)
        return before != (len(self.divergent_keys), len(self.divergent_nodes))

    def _parts(self, branch: int, node: int) -> bool:
        """Whether a branch lets threads come to a node that others do not come to, though they have not left."""
        return branch in self.divergent_nodes or (self.divides(branch) and not (node in self._staying and self.may_leave(branch)))

    def _reads_uniform(self, instruction: Instruction) -> bool:
        guard = instruction.predicate
        found = (*read(instruction), *(() if guard is None else (guard.register,)))
        return all(self._has_one_value(instruction, name) for name in found)

    def _has_one_value(self, instruction: Instruction, name: str) -> bool:
        if instruction.scope.is_register(name):
            return key_of(instruction.scope, name) not in self.divergent_keys
        return not name.startswith("%") or self._special(name)

    def _is_uniform(self, instruction: Instruction) -> bool:
        """Whether an instruction computes the same in all threads of a CTA that execute it together."""
        row = row_of(instruction)
        if row.is_load:
            parameter = bool(row.describe(instruction).is_parameter) and self._is_of_kernel(instruction)
            return (parameter or instruction.start in self._read_only) and self._reads_uniform(instruction)
        sources = all(self._has_one_value(instruction, name) for operand in instruction.operands[1:] for name in names(operand))
        return (row.is_arithmetic or row.is_of_addresses) and sources and self._reads_uniform(instruction)

    def _is_of_kernel(self, load: Instruction) -> bool:
        """Whether a load of a parameter is one of a parameter of the kernel."""
        found = (name for operand in load.operands[1:] for name in names(operand))
        return all(name in self._parameters or load.scope.is_register(name) for name in found)
