"""The control flow of a function, and what follows from it: blocks, dominators, control dependence, dataflow and slices.

`paths.py` and `dominators.py` know numbered nodes only, `graph.py` builds the nodes of a function, `registers.py` says what instructions
read and write, `dataflow.py` and `slices.py` follow values, `places.py` walks from instruction to instruction.
"""

from consan.instrument.control_flow.dominators import PostDominators, immediate_dominators
from consan.instrument.control_flow.graph import CONTROL, ENDS, BasicBlock, Graph, PathStep, graph_of
from consan.instrument.control_flow.registers import Guard, Key, definitions, guard_of, is_unread, key_of, keys_read, read, written

__all__ = [
    "CONTROL",
    "ENDS",
    "BasicBlock",
    "Graph",
    "Guard",
    "Key",
    "PathStep",
    "PostDominators",
    "definitions",
    "graph_of",
    "guard_of",
    "immediate_dominators",
    "is_unread",
    "key_of",
    "keys_read",
    "read",
    "written",
]
