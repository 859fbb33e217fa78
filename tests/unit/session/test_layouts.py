"""The places of shared variables: named by the virtual machine, forced where an assembler has no choice, else not known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from consan.instrument.sites import SharedVariable
from consan.reports.source.variables import Argument
from consan.session.modules.layouts import KernelParameters, layout_of, name_addresses

ONE, OTHER, ODD = SharedVariable("one", 64, 4, 4), SharedVariable("other", 32, 8, 8), SharedVariable("odd", 4, 4, 4)
DYNAMIC = SharedVariable("dynamic", 0, 16, 0)


def prepared(*variables: SharedVariable, plain: str = "", functions: int = 1, placed: tuple[str, ...] = ()) -> Any:
    reached = [SimpleNamespace(name="k", shared=variables, placed={symbol: 3 + at for at, symbol in enumerate(placed)})] * functions
    return SimpleNamespace(
        instrumented=SimpleNamespace(reachable=lambda entry: reached, functions=reached, module=SimpleNamespace(functions=())),
        plain=plain,
        loaded=object(),
        number=5,
        recorded=None,
    )


def assembler(*offsets: int | None) -> Any:
    """A device whose assembler names no offsets, and the offsets that a kernel has stored there."""
    shadow = SimpleNamespace(
        placed=lambda module, first, count: list(offsets) if (module, first or 3, count) == (5, 3, len(offsets)) else None
    )
    return SimpleNamespace(backend=SimpleNamespace(shared_offsets=lambda handle, entry: None), shadow=shadow)


def machine(**offsets: int) -> Any:
    """A device that lays variables out itself."""
    return SimpleNamespace(backend=SimpleNamespace(shared_offsets=lambda handle, entry: offsets))


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ((ONE,), ("one[0]", "")),
        ((DYNAMIC,), ("bytes 0..3 of dynamic shared memory", "bytes 80..83 of dynamic shared memory")),
        ((ONE, OTHER), ("", "")),
        ((ONE, OTHER, DYNAMIC), ("", "")),
        ((), ("", "")),
    ],
)
def test_what_no_kernel_tells_is_known_of_one_variable(variables: tuple[SharedVariable, ...], names: tuple[str, str]) -> None:
    made = layout_of(assembler(), prepared(*variables, functions=2), "k")
    assert (made.name(0, 4), made.name(80, 84)) == names


def test_a_kernel_that_tells_is_believed() -> None:
    module = prepared(ODD, ONE, OTHER, DYNAMIC, placed=("one", "odd", "dynamic"))
    made = layout_of(assembler(16, 0, 96), module, "k")
    names = [made.name(*each) for each in ((0, 4), (20, 24), (80, 84), (96, 100))]
    assert names == ["odd", "one[1]", "", "bytes 0..3 of dynamic shared memory"]


def test_a_kernel_that_has_not_run_tells_nothing() -> None:
    assert layout_of(assembler(None, None), prepared(ONE, OTHER, placed=("one", "other")), "k").name(0, 4) == ""


def test_a_machine_that_tells_is_believed() -> None:
    made = layout_of(machine(one=32, other=0, dynamic=96), prepared(ONE, OTHER, DYNAMIC), "k")
    assert [made.name(*each) for each in ((0, 8), (36, 40), (96, 100))] == ["other[0]", "one[1]", "bytes 0..3 of dynamic shared memory"]


def test_one_symbol_in_two_functions_has_no_place() -> None:
    twice = SharedVariable("one", 16, 4, 4)
    assert layout_of(machine(one=0), prepared(ONE, twice), "k").name(0, 4) == ""


def test_beside_one_symbol_of_two_functions_no_variable_is_alone() -> None:
    twice = SharedVariable("one", 16, 4, 4)
    assert layout_of(assembler(), prepared(ONE, twice, OTHER), "k").name(0, 8) == ""


def test_arguments_have_the_names_of_the_signature(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k(float* in, int n, float* out) { }")
    module = prepared(plain=f'.file 1 "{source}"\n')
    module.instrumented.module.functions = [SimpleNamespace(name="_Z1kPfiS_", body=object(), params=[object()] * 3)]
    first, third = 1 << 40, 1 << 41
    given = [Argument("argument 1", first, 16), Argument("argument 3", third, 32)]
    name = name_addresses(module, "_Z1kPfiS_", given)
    assert name(third + 4, third + 8) == "bytes 4..7 of argument 3 (out)"
    assert name(7, 8) == ""


def test_arrays_of_kernels_that_cupy_writes_have_the_names_that_its_user_knows(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k(const CArray<float, 1> _raw_a, float *_p_out, const CIndexer<1, true> _ind) { }")
    module = prepared(plain=f'.file 1 "{source}"\n')
    module.instrumented.module.functions = [SimpleNamespace(name="k", body=object(), params=[object()] * 3)]
    kernel = KernelParameters.of(module, "k")
    assert [kernel.name(number) for number in (1, 2, 3, 4)] == ["a", "out", "_ind", ""]
