"""Values of the cache as JSON: what is written is read again, and nothing but known classes is built."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from consan.instrument.effects.flags import Flag
from consan.instrument.ptx import parse
from consan.instrument.record import record
from consan.instrument.record.families.global_memory import Mode
from consan.toolchain import codec

PTX = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b32 %r<3>;
    .shared .align 4 .b8 s[128];
    mov.u32 %r1, %tid.x;
    st.shared.u32 [s], %r1;
    bar.sync 0;
    ld.shared.u32 %r2, [s];
    ret;
}
"""


FLAGS = Flag(0), max(Flag), Flag.STRONG | Flag.WAITS, (Flag(0), {Flag(0): Flag(0)})


def test_a_recorded_module_is_read_as_it_was_written() -> None:
    recorded = record(parse(PTX))
    alone = replace(recorded, expansion=None)
    assert codec.loads(codec.dumps(alone)) == alone


@pytest.mark.parametrize("value", [None, (1, "a", 2.5, True), {1: (2,)}, {3, 4}, frozenset({5}), [[], ()], Mode.OFF, *FLAGS])
def test_containers_and_members_keep_their_types(value: object) -> None:
    found = codec.loads(codec.dumps(value))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "stored",
    [
        ["record", "subprocess:Popen", "rm"],
        ["record", "consan.instrument.ptx:parse", "x"],
        ["member", "os:O_RDONLY", "x"],
        ["record", "consan.instrument.sites:Site"],
        ["unknown"],
        [],
    ],
)
def test_other_classes_and_damaged_values_are_refused(stored: object) -> None:
    with pytest.raises(ValueError, match="not a stored value"):
        codec.loads(json.dumps(stored).encode())


def test_what_cannot_be_read_again_is_not_written() -> None:
    with pytest.raises(TypeError, match="function cannot be stored"):
        codec.dumps((test_a_recorded_module_is_read_as_it_was_written,))
