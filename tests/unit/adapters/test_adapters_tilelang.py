"""The texts of tilelang's kernels have types that its NVRTC back end does not give them."""

from __future__ import annotations

import pytest

from consan._errors import ConsanError, UsageError
from consan.adapters.driven.tilelang import HOST_TYPES, of_nvrtc
from consan.toolchain import nvrtc

KERNEL = 'extern "C" __global__ void kernel(uint* out, ushort in, ulong more) { *out = in + more; }'


def test_imported_sources_have_the_types_of_the_hosts_headers() -> None:
    with pytest.raises(ConsanError):
        nvrtc.compile_ptx(KERNEL)
    assert ".entry kernel" in nvrtc.compile_ptx(HOST_TYPES + KERNEL).ptx
    assert ".entry kernel" in nvrtc.compile_ptx(HOST_TYPES + "typedef unsigned int uint;" + KERNEL).ptx


def test_options_of_nvcc_are_left_out() -> None:
    options = [
        "-O3",
        "-Wno-deprecated-declarations",
        "-DNDEBUG",
        "--expt-relaxed-constexpr",
        "--expt-extended-lambda",
        "--ptxas-options=-v,--register-usage-level=10",
    ]
    with pytest.raises(UsageError, match="rejects an option"):
        nvrtc.compile_ptx(HOST_TYPES + KERNEL, options=options)
    assert of_nvrtc(options) == ["-DNDEBUG"]
    assert ".entry kernel" in nvrtc.compile_ptx(HOST_TYPES + KERNEL, options=of_nvrtc(options)).ptx
