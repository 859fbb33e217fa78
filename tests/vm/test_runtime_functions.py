"""The shadow runtime's functions are read once in a process: modules share them, and each has them where its text says."""

from __future__ import annotations

from engine_support import cuda

from consan.backends.cpu import LoadedModule, Machine
from consan.instrument.called_hooks import instrument
from consan.instrument.ptx import parse
from consan.session.modules.runtime import library_for

SMALL = """extern "C" __global__ void small(int* out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
"""
OTHER = SMALL.replace("small", "other").replace("int tile", "long long tile")  # with other hooks of the same variant


def _loaded(source: str) -> LoadedModule:
    return Machine().load(instrument(cuda(source), library=library_for).ptx)


def test_functions_have_the_order_and_the_lines_of_the_text() -> None:
    for source in (SMALL, OTHER):
        program = _loaded(source).program
        read = parse(program.text).functions
        assert [function.name for function in program.functions] == [function.name for function in read]
        for ordinal, function in enumerate(read):
            code = program.code(function.name)
            assert code is not None
            assert code.ordinal == ordinal
            found = [(code.line(each), each.text) for each in code.instructions]
            assert found == [(each.line, each.text) for each in function.instructions()]


def test_modules_share_what_does_not_depend_on_them() -> None:
    small, other = _loaded(SMALL).program, _loaded(OTHER).program
    shared = {each.name for each in small.functions} & {each.name for each in other.functions}
    codes = [(small.code(name), other.code(name)) for name in shared]
    assert len(codes) > 5
    for mine, yours in codes:
        assert mine is not None
        assert yours is not None
        assert mine.instructions is yours.instructions
        assert (mine.program, yours.program) == (small, other)
    assert any(mine.above != yours.above for mine, yours in codes if mine and yours), "or the lines say nothing"
