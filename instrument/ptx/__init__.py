"""Reader of PTX: text to a lossless tree, the tree back to the same text, and edits by splicing.

`parse` never changes or drops anything. Every node is a range of the text, and `print_module` restores the same bytes. Follows the PTX
ISA 9.0 grammar, checked against ptxas. Not handled: the C preprocessor, and the validity of opcodes and types, which the instruction
table decides.
"""

from consan.instrument.ptx.declared import OPAQUE, Param, VarName, type_bytes
from consan.instrument.ptx.edits import Edits
from consan.instrument.ptx.errors import PtxSyntaxError
from consan.instrument.ptx.extents import three_extents
from consan.instrument.ptx.locations import Loc, LocDirective
from consan.instrument.ptx.operands import (
    Address,
    Immediate,
    Negated,
    Negative,
    Operand,
    Pair,
    Register,
    Symbol,
    SymbolOffset,
    TensorAddress,
    Tuple,
    Underscore,
    Vector,
)
from consan.instrument.ptx.parser import parse
from consan.instrument.ptx.printer import print_module
from consan.instrument.ptx.source import Source, Span
from consan.instrument.ptx.tree import (
    Block,
    Directive,
    Function,
    Instruction,
    Item,
    Label,
    Module,
    Node,
    Predicate,
    Section,
    Statement,
    Variable,
)

__all__ = [
    "OPAQUE",
    "Address",
    "Block",
    "Directive",
    "Edits",
    "Function",
    "Immediate",
    "Instruction",
    "Item",
    "Label",
    "Loc",
    "LocDirective",
    "Module",
    "Negated",
    "Negative",
    "Node",
    "Operand",
    "Pair",
    "Param",
    "Predicate",
    "PtxSyntaxError",
    "Register",
    "Section",
    "Source",
    "Span",
    "Statement",
    "Symbol",
    "SymbolOffset",
    "TensorAddress",
    "Tuple",
    "Underscore",
    "VarName",
    "Variable",
    "Vector",
    "parse",
    "print_module",
    "three_extents",
    "type_bytes",
]
