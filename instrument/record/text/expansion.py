"""The text that computes a full log from a compact one: the slice of a kernel (computed.py) with the recording of every word.

It runs on the virtual machine, for the CTAs whose logs are wanted. An instruction of the slice stays as it is, but where it reads what
the host gives: special registers of the grid, parameters, addresses of shared variables. An instruction whose result was recorded loads
it. A wait for an mbarrier has passed. A branch that does not matter goes to where its ways meet. All else is gone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from consan.instrument.control_flow import CONTROL
from consan.instrument.isa import flow_of, in_space, row_of
from consan.instrument.ptx import Block, Instruction, Label, Pair, Register, Symbol
from consan.instrument.record.analyses.computed import PLACE, Computability, elects_one
from consan.instrument.record.analyses.launch_inputs import LEADER, LaunchConstant
from consan.instrument.record.text import text
from consan.instrument.record.text.templates import LINE_BYTES
from consan.instrument.record.text.words import TextVariant, load, load_symbol
from consan.instrument.rewriting.emit import Unsupported, predicate_of, register_bits

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

GIVEN = "__consan_given"  # the variable in which the host says where it has put what the text reads
LOGS, CTAS, CONSTANTS, LEAVERS, LINES, USABLE, GIVEN_BYTES = 0, 8, 16, 24, 32, 40, 48
CTA_BYTES = 4 * len(PLACE)
LEAVER_BYTES = 16  # of a thread: how many places it has passed, 0 if it has not left; its mark; the place at which it stays, or 0
_CLUSTER = re.compile(r"\.reqnctapercluster\s+\d+(?:\s*,\s*\d+)*|\.explicitcluster|\.maxclusterrank\s+\d+")
_NEXT = f"add.u64 %__consan_k, %__consan_k, {LINE_BYTES};\n"


def variable() -> str:
    """The declaration of that variable."""
    return f".visible .const .align 16 .u64 {GIVEN}[{GIVEN_BYTES // 8}];\n"


def without_clusters(ptx: str) -> str:
    """The module without what its kernels demand of a cluster: CTAs of the expansion do not meet."""
    return _CLUSTER.sub("", ptx)


def prologue(entry: int) -> str:
    """Find the full log, the compact one, and what the host gives."""
    return (
        text.prologue(entry, all_have_logs=True)
        + ".reg .b64 %__consan_k, %__consan_u, %__consan_j, %__consan_z;\n.reg .b32 %__consan_n, %__consan_m, %__consan_o, %__consan_i;\n"
        + f"""mov.u32 %__consan_n, 0; ld.const.u64 %__consan_j, [{GIVEN}+{CONSTANTS}];
ld.const.u64 %__consan_t, [{GIVEN}+{CTAS}]; mul.wide.u32 %__consan_u, %__consan_cta, {CTA_BYTES};
add.u64 %__consan_u, %__consan_u, %__consan_t;
mad.lo.u32 %__consan_a, %__consan_cta, %__consan_threads, %__consan_self; mul.wide.u32 %__consan_k, %__consan_a, {LEAVER_BYTES};
ld.const.u64 %__consan_t, [{GIVEN}+{LEAVERS}]; add.u64 %__consan_k, %__consan_k, %__consan_t;
ld.global.v4.u32 {{%__consan_m, %__consan_o, %__consan_i, %__consan_a}}, [%__consan_k];
add.u32 %__consan_a, %__consan_threads, 31; shr.u32 %__consan_a, %__consan_a, 5; shr.u32 %__consan_b, %__consan_self, 5;
mad.lo.u32 %__consan_a, %__consan_cta, %__consan_a, %__consan_b; ld.const.u32 %__consan_b, [{GIVEN}+{LINES}];
mul.wide.u32 %__consan_k, %__consan_a, %__consan_b; shl.b64 %__consan_k, %__consan_k, {LINE_BYTES.bit_length() - 1};
ld.const.u64 %__consan_t, [{GIVEN}+{LOGS}]; add.u64 %__consan_k, %__consan_k, %__consan_t;
and.b32 %__consan_a, %__consan_self, 31; mul.wide.u32 %__consan_t, %__consan_a, 4; add.u64 %__consan_k, %__consan_k, %__consan_t;
ld.const.u64 %__consan_z, [{GIVEN}+{USABLE}]; add.u64 %__consan_z, %__consan_z, %__consan_k;
"""
    )


def cut(words: int, stay: str) -> str:
    """At a check for room: end the full log here, if what the compact one has next may have been written over. `stay`: a label."""
    return f"{text.cut(words)}setp.le.u64 %__consan_q, %__consan_k, %__consan_z;\n@%__consan_q bra {stay};\n{text.end_log(words)}{stay}:\n"


# -- results and branches, in both texts -------------------------------------------------------------------------------------


def result(kernel: FunctionRecorder, instruction: Instruction, node: int) -> str:
    """Behind an instruction: record its result, if it is one of the slice that the host cannot compute."""
    if kernel.computed is None or instruction.start not in kernel.computed.recorded or kernel.variant is not TextVariant.COMPACT:
        return ""
    results = sorted(kernel.computed.recorded[instruction.start])
    return "".join(_store(kernel, node, instruction.scope, name) for _, name in results)


def decision(kernel: FunctionRecorder, instruction: Instruction, node: int) -> str:
    """Before a branch that matters: record what it depends on, unless that is known."""
    computed = kernel.computed
    if computed is None:
        return ""
    if node not in computed.branches:
        if kernel.variant is TextVariant.COMPACT and _is_skipped(kernel, instruction, node):
            _landing(kernel, instruction, node)  # a compact text has an expansion
        return ""
    code = ""
    for key in sorted(computed.decides(instruction)):
        level = computed.level((key,))
        if level is Computability.UNKNOWN:
            code += _store(kernel, node, instruction.scope, key[1])
        elif level is Computability.CTA and kernel.variant is TextVariant.COMPACT and kernel.function.hashing:
            code += _value(instruction.scope, key[1]) + text.hash_word("%__consan_w")
            kernel.words.hashes = True
    return code


def _store(kernel: FunctionRecorder, node: int, scope: Block, name: str) -> str:
    """Store the value of a register in the compact log, or load it from there: in the block that is open, or by itself."""
    loads, block = kernel.variant.on_host, kernel.block
    place = block.stored if block is not None else 0
    if block is not None:
        block.stored += 1
        block.hashes |= kernel.function.hashing
        moved = ""
    else:
        kernel.words.add(node, not loads)
        kernel.words.stores = True
        kernel.words.hashes |= kernel.function.hashing
        moved = _NEXT if loads else text.close(1)
    if loads:
        return load(place) + moved + _set(scope, name)
    return _value(scope, name) + text.store(place, "%__consan_w") + text.hash_word("%__consan_w") * kernel.function.hashing + moved


def _value(scope: Block, name: str) -> str:
    bits = register_bits(name, scope)
    if bits not in (1, 32):
        raise Unsupported(f"a result of {bits} bits")
    return f"selp.u32 %__consan_w, 1, 0, {name};\n" if bits == 1 else f"mov.b32 %__consan_w, {name};\n"


def _set(scope: Block, name: str) -> str:
    return f"setp.ne.u32 {name}, %__consan_w, 0;\n" if register_bits(name, scope) == 1 else f"mov.b32 {name}, %__consan_w;\n"


# -- the text of the expansion -----------------------------------------------------------------------------------------------


def replaced(kernel: FunctionRecorder, instruction: Instruction, node: int) -> str | None:
    """The text in place of an instruction; None: the instruction itself."""
    computed, start = kernel.computed, instruction.start
    assert computed is not None
    if flow_of(instruction) in CONTROL:
        return _branch(kernel, instruction, node)
    guard = instruction.predicate
    if start in computed.repeated.passed:
        before = "" if guard is None else f"@{'!' if guard.negated else ''}{guard.register} "
        return f"{before}setp.eq.u32 {predicate_of(instruction.operands[0])[0]}, 0, 0;"
    if start in computed.recorded:
        return "".join(_store(kernel, node, instruction.scope, name) for _, name in sorted(computed.recorded[start]))
    if start not in computed.kept:
        return ""
    if elects_one(instruction):
        return _elected(computed.constants.slot(LEADER), instruction)
    if computed.warp.spreads(instruction):
        return f"mov.b32 {instruction.operands[0].text}, {instruction.operands[1].text};"
    return _given(kernel, instruction)


def _elected(slot: int, instruction: Instruction) -> str:
    """The same lane as on the device."""
    target = instruction.operands[0]
    lane, chosen = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    code = f"ld.global.u32 %__consan_w, [%__consan_j+{slot}];\n"
    if isinstance(lane, (Register, Symbol)):
        code += f"mov.b32 {lane.text}, %__consan_w;\n"
    return code + (f"mov.u32 %__consan_x, %laneid; setp.eq.u32 {chosen.text}, %__consan_x, %__consan_w;" if chosen is not None else "")


def _given(kernel: FunctionRecorder, instruction: Instruction) -> str | None:
    """An instruction that reads what the host gives."""
    assert kernel.computed is not None
    constant = kernel.computed.inputs.parameter(instruction)
    before = instruction.text[: instruction.text.index(instruction.opcode)]  # the guard
    if constant is not None:
        opcode = in_space(instruction, "param", "global")
        return f"{before}{opcode} {instruction.operands[0].text}, [%__consan_j+{kernel.computed.constants.slot(constant)}];"
    source = instruction.operands[-1].text
    if source in PLACE:
        return f"{before}ld.global.u32 {instruction.operands[0].text}, [%__consan_u+{4 * PLACE.index(source)}];"
    if source not in kernel.computed.inputs.symbols:
        return None
    slot, target = kernel.computed.constants.slot(LaunchConstant(source, 0, 4, symbol=True)), instruction.operands[0].text
    move = "cvt.u64.u32" if register_bits(target, instruction.scope) == 64 else "mov.b32"
    return f"{load_symbol(slot)}{before}{move} {target}, %__consan_w;"


def _branch(kernel: FunctionRecorder, instruction: Instruction, node: int) -> str | None:
    row = row_of(instruction)
    if row.traps:
        return "exit;"
    if not _is_skipped(kernel, instruction, node):
        return None
    landing = _landing(kernel, instruction, node)
    if landing is None:
        return text.ended() + "exit;"
    kernel.landings.add(landing)
    return f"bra {label(*landing)};"


def _is_skipped(kernel: FunctionRecorder, instruction: Instruction, node: int) -> bool:
    """Whether a branch chooses between ways that do not matter."""
    assert kernel.computed is not None
    return node not in kernel.computed.branches and (row_of(instruction).is_indexed or instruction.predicate is not None)


def _landing(kernel: FunctionRecorder, instruction: Instruction, node: int) -> tuple[int, int] | None:
    """The node at which the ways of a skipped branch meet, and where its label stands; None: each way ends the thread."""
    assert kernel.computed is not None
    beyond = kernel.computed.beyond(node)
    if beyond is None:
        return None
    first = kernel.facts.graph.nodes[beyond].steps[0].instruction
    place: Instruction | Block = first
    scope: Block | None = first.scope
    while scope is not None and not _sees(instruction.scope, scope):  # a block is entered at its beginning
        if next((each for each in scope.statements if isinstance(each, Instruction | Label | Block)), None) is not place:
            raise Unsupported("a branch into a scope")
        place, scope = scope, scope.parent
    return beyond, place.start


def label(node: int, place: int) -> str:
    """The label at an offset of the text from which a node is reached by branches that do not matter."""
    return f"$__consan_node{node}_{place}"


def _sees(scope: Block | None, other: Block) -> bool:
    while scope is not None:
        if scope is other:
            return True
        scope = scope.parent
    return False
