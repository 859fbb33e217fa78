"""Clocks are deposited at as many barriers as a module can name, so none of those that hooks deposit at may be left out."""

from __future__ import annotations

import pytest

from consan.instrument.functions.analyse import choose_variant, plan_functions
from consan.instrument.ptx import parse
from consan.instrument.runtime import Variant

KERNEL = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k()
{{
  .reg .b32 %name;
  .shared .align 8 .b64 bar;
  mbarrier.init.shared.b64 [bar], 1;
  mov.u32 %name, %warpid;
  {barriers}
  ret;
}}
"""


@pytest.mark.parametrize(
    ("barriers", "named"),
    [
        ("bar.sync 0;", 0),
        ("bar.sync 5;", 0),
        ("bar.sync 5, 64;", 8),
        ("bar.arrive 1, 64; bar.sync 5;", 2),
        ("bar.sync %name, 64;", 16),
        ("bar.sync %name;", 0),
        ("bar.arrive 1, 64; bar.sync %name;", 16),
    ],
)
def test_names_that_clocks_are_deposited_at(barriers: str, named: int) -> None:
    module = parse(KERNEL.format(barriers=barriers.replace("; ", ";\n  ")))
    assert choose_variant(plan_functions(module).values(), Variant()).named == named
