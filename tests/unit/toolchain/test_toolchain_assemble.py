"""PTX to cubin with both assemblers: resources, versions that are too new, errors with lines, and the cache in front."""

from __future__ import annotations

from pathlib import Path

import pytest

from consan._errors import EnvironmentFailure, UsageError
from consan.toolchain import assemble as module, find, nvrtc
from consan.toolchain.assemble import Tool, assemble, assemble_cached, entry_info, ptx_version, with_version
from consan.toolchain.cache import Cache

PTX = """.version 8.0
.target sm_80
.address_size 64

.visible .entry k(.param .u64 out)
{
    .shared .align 4 .b8 tile[128];
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, tile;
    st.shared.u32 [%r2], %r1;
    bar.sync 0;
    ld.shared.u32 %r3, [%r2];
    st.global.u32 [%rd2], %r3;
    ret;
}
"""
HOOKED = """
__device__ unsigned long long table[4096];
extern "C" __device__ __noinline__ void hook(unsigned address, int site)
{
    const unsigned long long mine = ((unsigned long long)site << 32) | threadIdx.x << 3 | 1;
    const unsigned long long other = atomicExch(&table[address >> 2 & 4095], mine);
    if ((unsigned)other != (unsigned)mine && other >> 32 != 0) atomicAdd(&table[0], 1ull);
}
extern "C" __global__ void k(float* p, int n)
{
    __shared__ float tile[32][33];
    float sums[16];
    for (int i = 0; i < 16; ++i) sums[i] = p[i + threadIdx.x];
    for (int k = 0; k < n; ++k) {
        tile[threadIdx.y][threadIdx.x] = p[k * 32 + threadIdx.x];
        hook(__cvta_generic_to_shared(&tile[threadIdx.y][threadIdx.x]), k);
        __syncthreads();
        for (int i = 0; i < 16; ++i) {
            hook(__cvta_generic_to_shared(&tile[i][threadIdx.x]), i);
            sums[i] += tile[i][threadIdx.x] * tile[threadIdx.y][i];
        }
        __syncthreads();
    }
    for (int i = 0; i < 16; ++i) p[i * 1024 + threadIdx.x] = sums[i];
}
"""


def only(monkeypatch: pytest.MonkeyPatch, *tools: Tool) -> None:
    monkeypatch.setattr(module, "_tools", lambda: list(tools))


needs_ptxas = pytest.mark.skipif(find.ptxas() is None, reason="no ptxas program here")
TOOLS = ["nvjitlink", pytest.param("ptxas", marks=needs_ptxas)]


@pytest.mark.parametrize("tool", TOOLS)
def test_cubin_and_resources(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, tool)
    done = assemble(PTX, "sm_90a")
    assert done.cubin.startswith(b"\x7fELF")
    assert (done.used, done.version, done.lowered_from) == (tool, (8, 0), None)
    assert done.info["k"].shared == 128
    assert done.info["k"].barriers == 1
    assert 4 <= done.info["k"].registers <= 32
    assert done.warnings == ()


@pytest.mark.parametrize("tool", TOOLS)
def test_error_names_the_line(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, tool)
    with pytest.raises(UsageError) as caught:
        assemble(PTX.replace("ld.shared", "lx.shared"), "sm_90a", name="bad.ptx")
    assert "bad.ptx:16: Not a name of any known instruction: 'lx'" in str(caught.value)


def test_many_errors_are_cut() -> None:
    broken = PTX.replace("    ret;", "    nonsense;\n" * 9 + "    ret;")
    with pytest.raises(UsageError, match="and 4 more errors"):
        assemble(broken, "sm_90a")


@pytest.mark.parametrize("tool", TOOLS)
def test_newer_ptx_is_lowered(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, tool)
    done = assemble(with_version(PTX, (99, 1)), "sm_90a")
    assert done.lowered_from == (99, 1)
    assert (8, 0) < done.version < (99, 1)


def test_newer_ptx_with_a_newer_instruction_names_both_versions() -> None:
    newer = with_version(PTX, (99, 1)).replace("bar.sync 0;", "bar.from.the.future 0;")
    with pytest.raises(UsageError, match=r"99\.1.*newer than \w+'s \d+\.\d+.*pip install -U nvidia-nvjitlink"):
        assemble(newer, "sm_90a", name="new.ptx")


def test_target_above_the_architecture() -> None:
    with pytest.raises(UsageError, match=r"SM version specified by \.target is higher"):
        assemble(PTX.replace("sm_80", "sm_90"), "sm_80")


@pytest.mark.parametrize("text", ["", "int main() {}", ".target sm_80"])
def test_not_ptx(text: str) -> None:
    with pytest.raises(UsageError, match=r"no \.version"):
        assemble(text, "sm_90a")


def test_unknown_option() -> None:
    with pytest.raises(UsageError, match="no-such-option"):
        assemble(PTX, "sm_90a", options=["--no-such-option"])


@pytest.mark.parametrize("arch", ["sm_1", "sm_999", "compute_90", "sm_90b"])
def test_unknown_architecture(arch: str) -> None:
    with pytest.raises(UsageError, match=arch):
        assemble(PTX, arch)


def test_version_helpers() -> None:
    assert ptx_version(PTX) == (8, 0)
    assert ptx_version("//\n  .version\t7.8\n") == (7, 8)
    lowered = with_version(PTX, (7, 5))
    assert ptx_version(lowered) == (7, 5)
    assert lowered.count("\n") == PTX.count("\n")


def test_local_functions_cost_no_more_than_in_whole_program_mode() -> None:
    """What the clone option is for: relocatable code needs half again as many registers for this kernel."""
    ptx = nvrtc.compile_ptx(HOOKED).ptx.replace(".visible .func", ".func")
    assert assemble(ptx, "sm_90a").info["k"].registers <= 40


@pytest.mark.parametrize("tool", ["nvjitlink", "ptxas"])
def test_fast_assembly_is_other_code_of_the_same_kernel(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its functions keep to the fixed ABI; where the assembler has no such way, the code is the same."""
    if not (find.ptxas() if tool == "ptxas" else find.locate(find.NVJITLINK)):
        pytest.skip(f"no {tool}")
    monkeypatch.setattr(module, "_ordered", lambda _: [tool])
    ptx = nvrtc.compile_ptx(HOOKED).ptx.replace(".visible .func", ".func")
    best, fast = (assemble(ptx, "sm_90a", fast=fast) for fast in (False, True))
    assert best.used == fast.used == tool
    assert set(best.info) == set(fast.info)
    assert best.info["k"].registers <= fast.info["k"].registers
    assert (best.cubin != fast.cubin) == (bool(module._clone_option()) if tool == "nvjitlink" else module._ptxas_knows_fast())


def test_fast_assembly_is_kept_apart(tmp_path: Path) -> None:
    cache, ptx = Cache(tmp_path), nvrtc.compile_ptx(HOOKED).ptx.replace(".visible .func", ".func")
    best = assemble_cached(ptx, "sm_90a", cache=cache)
    assert assemble_cached(ptx, "sm_90a", fast=True, cache=cache).cubin != best.cubin
    assert assemble_cached(ptx, "sm_90a", cache=cache).cubin == best.cubin


def test_no_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "locate", lambda _: None)
    monkeypatch.setattr(find, "ptxas", lambda: None)
    with pytest.raises(EnvironmentFailure, match="no PTX assembler"):
        assemble(PTX, "sm_90a")


def test_spills_and_advisories_are_read() -> None:
    log = (
        "ptxas info    : (C7509) Potential Performance Loss: wgmma.mma_async instructions are serialized\n"
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas info    : Function properties for k\n"
        "    96 bytes stack frame, 80 bytes spill stores, 72 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 2 barriers, 96 bytes cumulative stack size, 4096 bytes smem\n"
        "ptxas info    : Function properties for hook\n"
        "    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
    )
    k = entry_info(log)["k"]
    assert (k.registers, k.barriers, k.stack, k.spill_stores, k.spill_loads, k.shared) == (255, 2, 96, 80, 72, 4096)
    assert list(entry_info(log)) == ["k"]
    assert "C7509" in module._result(module._Outcome(b"x", log), "ptxas", (8, 0)).warnings[0]


def test_cached_result_is_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    first = assemble_cached(PTX, "sm_90a", cache=cache)
    monkeypatch.setattr(module, "_tools", lambda: pytest.fail("assembled again"))
    assert assemble_cached(PTX, "sm_90a", cache=cache) == first


def test_cache_tells_options_apart(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    plain = assemble_cached(nvrtc.compile_ptx(HOOKED).ptx, "sm_90a", cache=cache)
    tight = assemble_cached(nvrtc.compile_ptx(HOOKED).ptx, "sm_90a", cache=cache, options=["--maxrregcount=24"])
    assert tight.info["k"].registers < plain.info["k"].registers
