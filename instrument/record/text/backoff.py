"""A thread that polls memory in vain sleeps before it looks again (ISA "nanosleep").

Rounds with events between two reads stay in the log. Triton gives the others what one thread has polled through shared memory and a
barrier. A launch that waits for another GPU, while the host there checks a launch, would store millions of them, and its own check would
take longer still. So a thread that has read the same at the same address many times sleeps, for about an eighth of the time that it has
waited: the log has few rounds. Waits of less than a hundred microseconds or so are as they were.

A sleep is at most a millisecond, so that threads that wait for one another in a long chain lose little. One that waits for another GPU, by
an access of .sys scope, sleeps several times: the host there may check a launch for many seconds.
"""

from __future__ import annotations

from typing import Final

from consan.instrument.ptx import Module
from consan.instrument.record.analyses.clusters import target_number

SAME: Final = "%__consan_pz"  # whether an access has found what the one before it has
LONG: Final = "%__consan_zl"  # whether the thread has slept long behind its last poll
_KEPT, _COUNT, _TIME = "%__consan_z", "%__consan_zn", "%__consan_zt"
_AGAIN, _TIMES = "%__consan_zm", "%__consan_zk"
_ROUNDS: Final = 64  # in vain before the first sleep
_FIRST: Final = 256  # ns of the first sleeps
_SHIFT: Final = 4  # 16 rounds, then sleeps are twice as long
_DOUBLED: Final = 12  # how often
FAR_DOUBLED: Final = 19  # to an eighth of a second: a thread looks after each sleep whether the host stops the launch
_LONGEST: Final = 1_000_000  # ns, of one instruction
_FAR_SHIFT: Final = 19  # ns of one of several, about half of that
_LONG: Final = 16_384  # ns: beside it a look at whether the host stops the launch takes no time
_OLDEST_TARGET, _OLDEST_VERSION = 70, (6, 3)  # of the instruction


def exists(module: Module) -> bool:
    """Whether the module's target has the instruction."""
    return target_number(module) >= _OLDEST_TARGET and module.version >= _OLDEST_VERSION


def declarations(count: int) -> str:
    """The registers of so many polls: address and value of the last access, and how often it has found the same."""
    if not count:
        return ""
    kept = (f".reg .b64 {_KEPT}{number}_<2>; .reg .b32 {_COUNT}{number}; mov.b32 {_COUNT}{number}, 0;\n" for number in range(count))
    cleared = (f"mov.b64 {_KEPT}{number}_{at}, 0;\n" for number in range(count) for at in range(2))
    return (
        f".reg .pred {SAME}, {LONG}, {_AGAIN};\n.reg .b32 {_TIME}, {_TIMES};\nmov.u32 {_TIME}, 0; setp.ne.u32 {LONG}, {_TIME}, 0;\n"
        + "".join(kept)
        + "".join(cleared)
    )


def slept(number: int, place: str, seen: str, guard: str, unchanged: str, *, far: bool = False) -> str:
    """The text behind a poll. `place`, `seen`: its address and value. `unchanged`: text that keeps SAME if memory is as it was.

    `far`: it may wait for another GPU.
    """
    kept, count = f"{_KEPT}{number}_", f"{_COUNT}{number}"
    return f"""setp.ne.s32 {SAME}, {count}, {count};
{guard}setp.eq.s64 {SAME}, {kept}0, {place};
setp.eq.and.s64 {SAME}, {kept}1, {seen}, {SAME};
{unchanged}{guard}mov.b64 {kept}0, {place};
{guard}mov.b64 {kept}1, {seen};
@!{SAME} mov.b32 {count}, 0;
@{SAME} add.s32 {count}, {count}, 1;
setp.gt.and.s32 {SAME}, {count}, {_ROUNDS}, {SAME};
sub.s32 {_TIME}, {count}, {_ROUNDS};
shr.u32 {_TIME}, {_TIME}, {_SHIFT};
min.u32 {_TIME}, {_TIME}, {FAR_DOUBLED if far else _DOUBLED};
shl.b32 {_TIME}, {_FIRST}, {_TIME};
{_sleep_far(number) if far else _SLEEP}setp.ge.and.u32 {LONG}, {_TIME}, {_LONG}, {SAME};
"""


_SLEEP: Final = f"""min.u32 {_TIME}, {_TIME}, {_LONGEST};
@{SAME} nanosleep.u32 {_TIME};
"""


def _sleep_far(number: int) -> str:
    again = f"$__consan_sleeps{number}"
    return f"""shr.u32 {_TIMES}, {_TIME}, {_FAR_SHIFT};
min.u32 {_TIME}, {_TIME}, {1 << _FAR_SHIFT};
{again}:
@{SAME} nanosleep.u32 {_TIME};
setp.ne.and.u32 {_AGAIN}, {_TIMES}, 0, {SAME};
sub.u32 {_TIMES}, {_TIMES}, 1;
@{_AGAIN} bra {again};
"""
