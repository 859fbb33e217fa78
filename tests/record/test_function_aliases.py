"""Calls of a function by another name of it (ISA ".alias"), as compilers write constructors in relocatable code."""

from __future__ import annotations

import numpy as np
import pytest

import consan
from consan.instrument.functions.analyse import external_calls, plan_functions
from consan.instrument.ptx import parse
from consan.instrument.record import record
from consan.toolchain.assemble import assemble_cached

TEXT = """.version 9.0
.target {target}
.address_size 64
.shared .align 4 .b8 tile[128];
.visible .func other(.param .b64 out);
.visible .func store(.param .b64 out)
{{
.reg .b64 %d<3>; .reg .b32 %r<6>;
ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r4, %r3, %r2;
st.shared.u32 [%r4], %r1;
{between}
ld.shared.u32 %r5, [%r2+4]; cvt.u64.u32 %d2, %r3; add.u64 %d1, %d1, %d2;
st.global.u32 [%d1], %r5;
ret;
}}
.alias other, store;
.visible .entry k(.param .u64 p)
{{
.reg .b64 %d<3>;
ld.param.u64 %d1, [p];
{{ .param .b64 a; st.param.b64 [a], %d1; {call} }}
ret;
}}
"""
DIRECT = "call other, (a);"
BY_ADDRESS = "mov.u64 %d2, other; kind : .callprototype _ (.param .b64 _); call %d2, (a), kind;"


@pytest.mark.parametrize("call", [DIRECT, BY_ADDRESS])
@pytest.mark.parametrize("engine", ["record", "inline"])
@pytest.mark.parametrize(("between", "kinds"), [("", {"data-race"}), ("bar.warp.sync -1;", set())])
def test_what_the_function_does_is_checked(call: str, engine: str, between: str, kinds: set[str]) -> None:
    text, out = TEXT.format(target="sm_80", between=between, call=call), np.zeros(32, np.uint32)
    report = consan.launch(consan.Kernel(text, entry="k"), 1, 32, [out], device="cpu", engine=engine)
    assert {finding.kind for finding in report.findings if finding.severity == "error"} == kinds
    assert not report.kernels[0].unmodelled
    assert kinds or set(out) == {1}


@pytest.mark.parametrize("call", [DIRECT, BY_ADDRESS])
def test_the_other_name_is_the_function(call: str) -> None:
    plans = plan_functions(parse(TEXT.format(target="sm_80", between="", call=call)), recorded=True)
    assert external_calls(plans["k"], plans) == set()
    assert call == BY_ADDRESS or plans["k"].stats.calls == {"store"}


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100a"])
def test_the_recorded_text_assembles(target: str) -> None:
    assert "k" in assemble_cached(record(TEXT.format(target=target, between="", call=DIRECT), global_races=True).ptx, target).info
