"""Names as a reader of C++ knows them: kernels in titles, inlined functions, variables."""

from __future__ import annotations

import pytest

from consan.reports.source import names

CUB = "_ZN3cub16_V_300500_SM_90011BlockReduceIfLi128ELNS_20BlockReduceAlgorithmE2ELi1ELi1EE3SumEf"


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("copy16", "copy16"),
        ("_Z6copy16PfPKf", "copy16"),
        ("_ZN3foo3barEi", "foo::bar"),
        ("_Z4fillIfEvPT_S0_", "fill"),
        ("_ZN3foo4fillIfEEvPT_", "foo::fill"),
        ("_ZL4warpv", "warp"),
        ("_ZZ5twiceIfLi128EET_PS0_ENKUliE_clEi", "twice::{lambda#1}::operator()"),
        ("_ZNK3VecltERKS_", "Vec::operator<"),
        ("_ZN3VecaSERKS_", "Vec::operator="),
        ("_ZN12_GLOBAL__N_14loadEPf", "{anonymous}::load"),
        ("_ZN49_INTERNAL_00000000_6_cub_cu_9a1cf300_10210_abcdef23__pipeline_memcpy_asyncEPvPKv", "__pipeline_memcpy_async"),
        ("_Z", "_Z"),
        ("_Znonsense", "_Znonsense"),
        ("", ""),
    ],
)
def test_function_name(symbol: str, name: str) -> None:
    assert names.function_name(symbol) == name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("kernel", "kernel"),
        ("_Z3revIfLi128EEvPf", "rev<float, 128>"),
        ("_Z6reducePfi", "reduce"),
        ("_Z1kI" + "6Wanted" * 40 + "EvPf", "k<...>"),
    ],
)
def test_kernel_name(symbol: str, name: str) -> None:
    assert names.kernel_name(symbol) == name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("tile", "tile"),
        ("_ZZ1kPfE4tile", "tile"),
        ("_ZZ1kIfLi128EEvPKT_PS0_E4temp", "temp"),
        ("_ZN3foo4ringE", "foo::ring"),
        ("_ZZ1kE4stat_$_1", "stat"),
    ],
)
def test_variable_name(symbol: str, name: str) -> None:
    assert names.variable_name(symbol) == name


def test_marks_of_frameworks_are_left_out() -> None:
    assert names.kernel_name("_ZN8__main__7reverseB2v1B3cw5Ev") == "__main__::reverse"
    assert names.kernel_name("add_92443627_cuda_kernel_forward") == "add"


def test_versions_of_libraries_are_left_out() -> None:
    assert names.function_name(CUB) == "cub::BlockReduce::Sum"


def _forget() -> None:
    names.demangled.cache_clear()
    names.function_name.cache_clear()


@pytest.mark.parametrize(("symbol", "name"), [("_ZN3foo3barEi", "foo::bar"), ("_Z4fillIfEvPT_", "fill"), ("_ZN3foo4fillIfEEvPT_", "")])
def test_without_a_demangler_plain_names_are_read(symbol: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_demangler", lambda: None)
    _forget()
    assert names.function_name(symbol) == (name or symbol)
    _forget()
