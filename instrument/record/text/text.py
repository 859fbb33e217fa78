"""The PTX that a recorded kernel is given: its registers, prologue, epilogue, words, hashes and cuts.

Registers that live through the kernel: a cursor (64 bits), two hashes (64 bits each), and the end of the log (32 bits): 7 registers.
All others are temporaries of a few instructions. Every inserted name begins with `%__consan_`.

The hashes differ in kind: one is a polynomial modulo 2^64, the other multiplies with carry, which is a polynomial modulo the prime
MULTIPLIER_2 * 2^32 - 1. Changes of words that cancel in one do not in the other.
"""

from __future__ import annotations

from consan.instrument.record.text.templates import END, LINE_BYTES, STOP

LAUNCH = "__consan_record"  # the module's variable with the address of what a launch leaves behind beside its logs
SWITCH = 8  # bytes into that variable: a word that the host sets to stop the launch (leaving.py)
LAUNCH_BYTES = 16
WINDOW, RESULT_BYTES = 0, 8  # where in there: the window of shared memory; then constants of a compact log
# The values that a launch needs, in a variable of constant memory (consan/checker/logs/launch.py writes it): the first fields have 8 bytes.
PLACES = "__consan_launch"
ARENA, START, HASHES, STATES, ENDS, CLOCKS, LINES, USABLE, ZERO, COUNT, FIRST, SECOND = 0, 8, 16, 24, 32, 40, 48, 52, 56, 60, 64, 68
PLACES_BYTES = 72
CLOCKS_OF_LAUNCH, CLOCK_BYTES = 1 << 12, 32  # how many clocks there are for strong accesses, and their distance: a sector of the L2 cache
HASH_BYTES = 16  # of a thread
END_BYTES = 4  # of a thread, in a kernel with a compact log: its words
LEFT = "$__consan_left"  # where threads leave
_DISTANCE = "cvt.u32.u64 %__consan_w, %__consan_c; sub.u32 %__consan_x, %__consan_l, %__consan_w;"  # from the cursor to the limit
STATE_BYTES = 64  # of a thread, in modules with recorded functions: cursor, hashes, limit; and of the last poll in a function
POLL = 32  # bytes into the state: where the poll's block ended, its address, what it has read, and its number
FACTOR = 0x9E3779B1  # of the words of a stored value
MULTIPLIER_1, MULTIPLIER_2 = 0x9E3779B97F4A7C15, 4294883355

DECLARATIONS = """.reg .b64 %__consan_c, %__consan_h, %__consan_g, %__consan_v;
.reg .b32 %__consan_l, %__consan_w, %__consan_x, %__consan_y, %__consan_e;
.reg .pred %__consan_q;
.reg .b32 %__consan_a, %__consan_b, %__consan_d, %__consan_self, %__consan_threads, %__consan_cta;
.reg .b64 %__consan_t;
"""

# The prologue begins with it, so that what comes right behind has it. Elsewhere it is computed again: that costs less than registers.
PLACE = """mov.u32 %__consan_a, %ntid.x; mov.u32 %__consan_b, %ntid.y; mul.lo.u32 %__consan_threads, %__consan_a, %__consan_b;
mov.u32 %__consan_d, %tid.z; mov.u32 %__consan_self, %tid.y; mad.lo.u32 %__consan_self, %__consan_d, %__consan_b, %__consan_self;
mov.u32 %__consan_d, %tid.x; mad.lo.u32 %__consan_self, %__consan_self, %__consan_a, %__consan_d;
mov.u32 %__consan_d, %ntid.z; mul.lo.u32 %__consan_threads, %__consan_threads, %__consan_d;
mov.u32 %__consan_a, %ctaid.z; mov.u32 %__consan_b, %nctaid.y; mov.u32 %__consan_d, %ctaid.y;
mad.lo.u32 %__consan_a, %__consan_a, %__consan_b, %__consan_d;
mov.u32 %__consan_b, %nctaid.x; mov.u32 %__consan_d, %ctaid.x; mad.lo.u32 %__consan_cta, %__consan_a, %__consan_b, %__consan_d;
"""


def _of_thread(target: str, field: int, nbytes: int) -> str:
    """The address of what a thread has in an array of the launch."""
    return f"""mad.lo.u32 %__consan_a, %__consan_cta, %__consan_threads, %__consan_self; ld.const.u64 %__consan_t, [{PLACES}+{field}];
mul.wide.u32 {target}, %__consan_a, {nbytes}; add.u64 {target}, {target}, %__consan_t;
"""


# The number of a CTA among those with a log, which are two runs of COUNT CTAs each: from FIRST and from SECOND on. All others share one
# more log, which nobody reads (consan/checker/logs/shares.py).
_SLOT = f"""ld.const.v2.u32 {{%__consan_w, %__consan_x}}, [{PLACES}+{FIRST}]; ld.const.u32 %__consan_y, [{PLACES}+{COUNT}];
sub.u32 %__consan_d, %__consan_cta, %__consan_w; min.u32 %__consan_d, %__consan_d, %__consan_y;
sub.u32 %__consan_x, %__consan_cta, %__consan_x; min.u32 %__consan_x, %__consan_x, %__consan_y;
setp.eq.u32 %__consan_q, %__consan_d, %__consan_y; @%__consan_q add.u32 %__consan_d, %__consan_d, %__consan_x;
"""


def prologue(entry: int, *, all_have_logs: bool = False) -> str:
    """Find the thread's log and start the hashes. The first thread of the grid stores the window of shared memory."""
    slot = "%__consan_cta" if all_have_logs else "%__consan_d"
    return (
        DECLARATIONS
        + PLACE
        + _SLOT * (not all_have_logs)
        + f"""add.u32 %__consan_a, %__consan_threads, 31; shr.u32 %__consan_a, %__consan_a, 5; shr.u32 %__consan_b, %__consan_self, 5;
mad.lo.u32 %__consan_a, {slot}, %__consan_a, %__consan_b; ld.const.v2.u32 {{%__consan_b, %__consan_l}}, [{PLACES}+{LINES}];
mul.wide.u32 %__consan_c, %__consan_a, %__consan_b; shl.b64 %__consan_c, %__consan_c, {LINE_BYTES.bit_length() - 1};
ld.const.v2.u64 {{%__consan_t, %__consan_h}}, [{PLACES}+{ARENA}]; add.u64 %__consan_c, %__consan_c, %__consan_t;
and.b32 %__consan_a, %__consan_self, 31; mul.wide.u32 %__consan_t, %__consan_a, 4; add.u64 %__consan_c, %__consan_c, %__consan_t;
cvt.u32.u64 %__consan_a, %__consan_c; add.u32 %__consan_l, %__consan_l, %__consan_a;
add.u64 %__consan_h, %__consan_h, {entry}; xor.b64 %__consan_g, %__consan_h, 0x5851F42D4C957F2D;
or.b32 %__consan_a, %__consan_cta, %__consan_self; setp.ne.u32 %__consan_q, %__consan_a, 0;
@%__consan_q bra $__consan_begun;
mov.u32 %__consan_a, %reserved_smem_offset_begin; mov.u32 %__consan_b, %reserved_smem_offset_cap;
setp.eq.u32 %__consan_q, %__consan_a, 0; selp.b32 %__consan_a, %__consan_b, 0, %__consan_q;
mov.u32 %__consan_b, %total_smem_size; ld.global.u64 %__consan_t, [{LAUNCH}];
st.global.v2.u32 [%__consan_t+{WINDOW}], {{%__consan_a, %__consan_b}};
$__consan_begun:
"""
    )


def ended() -> str:
    """End the log."""
    return f"mov.u32 %__consan_w, {END}; st.global.u32 [%__consan_c], %__consan_w;\n"


def epilogue() -> str:
    """End the log and store the hashes."""
    return ended() + PLACE + _of_thread("%__consan_v", HASHES, HASH_BYTES) + "st.global.v2.u64 [%__consan_v], {%__consan_h, %__consan_g};\n"


def compact_prologue(entry: int, *, positions: bool) -> str:
    """The same for a compact log. Registers for which there is no use cost nothing. `positions`: a thread may stay at a barrier."""
    kept = ".reg .b64 %__consan_s;\n" + _of_thread("%__consan_s", HASHES, HASH_BYTES) if positions else ""
    return prologue(entry) + ".reg .b32 %__consan_n;\nmov.u32 %__consan_n, 0;\n" + kept


def waits() -> str:
    """Store that the thread waits, and how many places it has passed."""
    return f"mov.u32 %__consan_w, {STOP}; st.global.v2.u32 [%__consan_s+8], {{%__consan_w, %__consan_n}};\n"


def constants(given: list[tuple[int, str, int, int, bool]]) -> str:
    """The first thread of the grid stores constants: for each its place, its name, an offset and how many bytes, and if it is a symbol."""
    lines: list[str] = []
    for place, name, offset, nbytes, symbol in given:
        place += RESULT_BYTES
        if symbol:
            lines.append(f"mov.u32 %__consan_a, {name}; st.global.u32 [%__consan_t+{place}], %__consan_a;")
        width = 4 if offset % 4 == nbytes % 4 == 0 else 1
        for at in range(0, 0 if symbol else nbytes, width):
            lines.append(f"ld.param.u{8 * width} %__consan_a, [{name}+{offset + at}];")
            lines.append(f"st.global.u{8 * width} [%__consan_t+{place + at}], %__consan_a;")
    if not lines:
        return ""
    first = (
        "or.b32 %__consan_a, %__consan_cta, %__consan_self; setp.ne.u32 %__consan_q, %__consan_a, 0;\n@%__consan_q bra $__consan_kept;\n"
    )
    load = f"ld.global.u64 %__consan_t, [{LAUNCH}];\n"
    return first + load + "\n".join(lines) + "\n$__consan_kept:\n"


def leader(place: int) -> str:
    """The first warp of the grid, if it is whole, stores which lane is elected among all."""
    return f"""setp.ne.u32 %__consan_q, %__consan_cta, 0; setp.ge.or.u32 %__consan_q, %__consan_self, 32, %__consan_q;
setp.lt.or.u32 %__consan_q, %__consan_threads, 32, %__consan_q;
@%__consan_q bra $__consan_elected;
elect.sync %__consan_a|%__consan_q, -1; ld.global.u64 %__consan_t, [{LAUNCH}];
st.global.u32 [%__consan_t+{RESULT_BYTES + place}], %__consan_a;
$__consan_elected:
"""


def compact_epilogue(*, counts: bool, hashes: bool) -> str:
    """Store the hashes, and how much of a compact log is used, where the text does not bound that (`counts`)."""
    if not (counts or hashes):
        return ""
    kept = "st.global.v2.u64 [%__consan_v], {%__consan_h, %__consan_g};\n" if hashes else ""
    return PLACE + _of_thread("%__consan_v", HASHES, HASH_BYTES) + kept + _used() * counts


def left(arrivals: str, kept: str) -> str:
    """The text behind the prologue at which threads leave (leaving.py). `kept`: the words that they store there."""
    return f"bra.uni $__consan_entered;\n{LEFT}:\n{arrivals}{kept}exit;\n$__consan_entered:\n"


def compact_left(*, counts: bool) -> str:
    """The same for a thread that leaves: it stores where it was, and how many places it has passed."""
    kept = "st.global.v2.u32 [%__consan_v+8], {%__consan_w, %__consan_n};\n"
    return f"{PLACE}{_of_thread('%__consan_v', HASHES, HASH_BYTES)}{kept}{_used() * counts}"


def _used() -> str:
    """Store how many bytes of the log are used: from its limit, which is the lower half of an address."""
    return f"""ld.const.u32 %__consan_x, [{PLACES}+{USABLE}]; cvt.u32.u64 %__consan_y, %__consan_c;
sub.u32 %__consan_y, %__consan_y, %__consan_l; add.u32 %__consan_y, %__consan_y, %__consan_x;
{_of_thread("%__consan_v", ENDS, END_BYTES)}st.global.u32 [%__consan_v], %__consan_y;
"""


def state() -> str:
    """Find the place where the thread keeps its cursor and its hashes across calls."""
    return ".reg .b64 %__consan_s;\n" + _of_thread("%__consan_s", STATES, STATE_BYTES)


def forget_poll() -> str:
    """No poll of a function has been recorded. A kernel begins with it."""
    return f"mov.b64 %__consan_v, 0; st.global.u64 [%__consan_s+{POLL + 24}], %__consan_v;\n"


def suspend_poll(name: str, number: int) -> str:
    """Store what a poll of a function has read. `name`: of its registers without their last digit; `number`: of the poll, not zero."""
    return f"""mov.b64 %__consan_v, {number}; st.global.v2.u64 [%__consan_s+{POLL}], {{{name}0, {name}1}};
st.global.v2.u64 [%__consan_s+{POLL + 16}], {{{name}2, %__consan_v}};
"""


def resume_poll(name: str, number: int, same: str) -> str:
    """Load what the last poll of a function has read, and whether it was this one into the predicate `same`."""
    return f"""ld.global.v2.u64 {{{name}0, {name}1}}, [%__consan_s+{POLL}];
ld.global.v2.u64 {{{name}2, %__consan_v}}, [%__consan_s+{POLL + 16}]; setp.eq.s64 {same}, %__consan_v, {number};
"""


def function_prologue() -> str:
    """As `prologue`, for a device function."""
    return DECLARATIONS + PLACE + state() + resume() + "ld.global.u32 %__consan_l, [%__consan_s+24];\n"


def suspend() -> str:
    """Store the cursor and the hashes: before a call, and where a function returns."""
    return "st.global.v2.u64 [%__consan_s], {%__consan_c, %__consan_h}; st.global.u64 [%__consan_s+16], %__consan_g;\n"


def suspend_limit() -> str:
    """Store also what functions do not change. A kernel does so before a call."""
    return "st.global.u32 [%__consan_s+24], %__consan_l;\n"


def resume() -> str:
    """Load the cursor and the hashes: after a call, and where a function begins."""
    return "ld.global.v2.u64 {%__consan_c, %__consan_h}, [%__consan_s]; ld.global.u64 %__consan_g, [%__consan_s+16];\n"


def cut(words: int, full: str = "", room: str = "") -> str:
    """A check for room: at the head of a loop, where a function begins, and after a call.

    A thread without room continues at the end of its log, and notes that in the last line.
    `words`: the most that a thread stores up to the next cut, and one for the mark of the end. `full`: what it then executes, up to the
    label `room`.
    """
    check = f"{_DISTANCE}\nsetp.lt.s32 %__consan_q, %__consan_x, 0;\n"
    turn = _turn(words)
    if not full:
        return check + "".join(f"@%__consan_q {each}\n" for each in turn)
    return f"{check}@!%__consan_q bra {room};\n{' '.join(turn)}\n{full}{room}:\n"


def end_log(words: int) -> str:
    """Exit, and note in the last line that the log ends here."""
    return "\n".join((_DISTANCE, *_turn(words), "exit;\n"))


def _turn(words: int) -> tuple[str, ...]:
    """Continue at the end of the log, and note that in the last line."""
    # The limit is the lower half of an address: a log may lie across a multiple of 4 GiB.
    back = ("cvt.s64.s32 %__consan_v, %__consan_x;", "add.s64 %__consan_c, %__consan_c, %__consan_v;")
    return (*back, f"st.global.u32 [%__consan_c+{words * LINE_BYTES}], %__consan_l;")


def store(position: int, value: str) -> str:
    """Store a word of the block."""
    return f"st.global.u32 [%__consan_c+{position * LINE_BYTES}], {value};\n"


def store_once(position: int, value: str) -> str:
    """The same by the first lane of a warp, for all of its lanes."""
    return f"mov.u32 %__consan_x, %laneid; setp.eq.u32 %__consan_q, %__consan_x, 0;\n@%__consan_q {store(position, value)}"


def hash_word(value: str) -> str:
    """Add a word in a register to both hashes."""
    return f"""cvt.u64.u32 %__consan_v, {value}; mad.lo.u64 %__consan_h, %__consan_h, {MULTIPLIER_1}, %__consan_v;
{_with_carry(value)}"""


def fold(value: str, folded: tuple[str, str]) -> str:
    """Add a word to two others, which are hashed in the end: less work than to hash each, and fewer registers."""
    one, other = folded
    return f"""mad.lo.u32 {one}, {one}, 0x9E3779B1, {value}; shf.l.wrap.b32 {other}, {other}, {other}, 5;
xor.b32 {other}, {other}, {value}; mul.lo.u32 {other}, {other}, 0x85EBCA77;"""


def hash_constant(value: int) -> str:
    """As `hash_word`, for a constant."""
    return f"mad.lo.u64 %__consan_h, %__consan_h, {MULTIPLIER_1}, {value};\n{_with_carry(str(value))}"


def _with_carry(value: str) -> str:
    """(low ^ word) * multiplier + high."""
    return f"""mov.b64 {{%__consan_x, %__consan_y}}, %__consan_g; xor.b32 %__consan_x, %__consan_x, {value};
cvt.u64.u32 %__consan_v, %__consan_y; mad.wide.u32 %__consan_g, %__consan_x, {MULTIPLIER_2}, %__consan_v;
"""


def number(block: int) -> str:
    """Store the number of a block."""
    return f"mov.u32 %__consan_w, {block};\n" + store(0, "%__consan_w")


def close(words: int) -> str:
    """Move the cursor past the block."""
    return f"add.u64 %__consan_c, %__consan_c, {words * LINE_BYTES};\n"


def stop() -> str:
    """Mark the end of the log before an instruction that may wait for ever. The next block overwrites the mark."""
    return f"mov.u32 %__consan_w, {STOP}; st.global.u32 [%__consan_c], %__consan_w;\n"
