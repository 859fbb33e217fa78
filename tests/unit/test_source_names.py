"""Names of inlined functions as a reader of C++ knows them."""

from __future__ import annotations

import pytest

from consan.instrument.passes.context import source_name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("copy16", "copy16"),
        ("_Z6copy16PfPKf", "copy16"),
        ("_ZN3foo3barEi", "foo::bar"),
        ("_Z4fillIfEvPT_S0_", "fill"),
        ("_ZN3foo4fillIfEEvPT_", "_ZN3foo4fillIfEEvPT_"),
        ("_ZL4warpv", "_ZL4warpv"),
        ("_Z", "_Z"),
        ("", ""),
    ],
)
def test_source_name(symbol: str, name: str) -> None:
    assert source_name(symbol) == name
