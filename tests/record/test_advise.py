"""`consan advise`: what may be left out of a kernel, what is needed, and what is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from consan.__main__ import main
from consan.instrument.record.analyses.reach import BarrierReach

SUPERFLUOUS = """
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float a[128], b[128];
    int t = threadIdx.x;
    a[t] = x[t];
    __syncthreads();
    __syncthreads();
    float v = a[127 - t];
    __syncthreads();
    b[t] = v;
    __syncwarp();
    __syncthreads();
    out[t] = b[127 - t] + v;
}
"""
FLAG = """
extern "C" __global__ void k(const int* x, int* out) {
    __shared__ volatile int count;
    int t = threadIdx.x;
    if (t == 0) count = x[0];
    __syncthreads();
    out[t] = count;
}
"""
TOTAL = """
extern "C" __global__ void k(const int* x, int* out) {
    __shared__ int count;
    int t = threadIdx.x;
    if (t == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, x[t]);
    __syncthreads();
    out[t] = atomicAdd(&count, 0);
}
"""
SEMAPHORE = """
extern "C" __global__ void k(float* part, int* count, float* out) {
    __shared__ int last;
    int t = threadIdx.x, cta = blockIdx.x;
    part[cta * 64 + t] = cta;
    __threadfence();
    __syncthreads();
    if (t == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        __threadfence();
        out[t] = ((volatile float*)part)[t] + ((volatile float*)part)[64 + t];
    }
}
"""
IN_PLACE = """
extern "C" __global__ void k(float* x) {
    int t = threadIdx.x;
    float v = x[127 - t];
    __syncthreads();
    x[t] = v;
}
"""
CONVERGENCE = """
extern "C" __global__ void k(int* out) {
    int t = threadIdx.x, v = t;
    __syncwarp();
    v += __shfl_xor_sync(0xffffffff, v, 1);
    out[t] = v;
}
"""


def _document(folder: Path, source: str, *words: str) -> dict[str, Any]:
    """The advice as JSON."""
    (folder / "k.cu").write_text(source)
    out = folder / "advice.json"
    assert main(["advise", str(folder / "k.cu"), *words, "-o", str(out)]) == 0
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def _by_line(document: dict[str, Any]) -> dict[int, Any]:
    return {each["line"]: each for each in document["lines"]}


def _advise(folder: Path, source: str, *words: str) -> dict[int, Any]:
    """The list by source line."""
    return _by_line(_document(folder, source, *words))


LAST = """
template <typename T> __global__ void total(const T* x, T* y, unsigned* count, T* part) {
    __shared__ bool last;
    if (threadIdx.x == 0) { part[blockIdx.x] = x[blockIdx.x]; __threadfence(); last = atomicAdd(count, 1) == gridDim.x - 1; }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        __threadfence();
        T sum = 0; for (int i = 0; i < gridDim.x; i++) sum += part[i];
        y[0] = sum;
    }
}
template __global__ void total<float>(const float*, float*, unsigned*, float*);
__global__ void other() { __syncthreads(); }
"""


def test_what_one_cta_alone_runs_is_counted_and_other_kernels_are_not_listed(tmp_path: Path) -> None:
    """CTAs that meet at a flag are replayed together, and have no histories that are equal."""
    sizes = ("f32[4]=arange", "f32[1]=zeros", "u32[1]=zeros", "f32[4]=zeros")
    words = [word for size in sizes for word in ("--arg", size)]
    document = _document(tmp_path, LAST, "--entry", "total<float>", "--grid", "4", "--block", "32", *words)
    assert {line: each["ran"] for line, each in _by_line(document).items()} == {4: 4, 5: 128, 7: 1}
    assert [each["ctas"] for each in document["kernels"] if each["ctas"]] == [4]


def test_what_nothing_needs_is_listed_alone_and_together(tmp_path: Path) -> None:
    document = _document(tmp_path, SUPERFLUOUS, "--grid", "1", "--block", "128", "--arg", "f32[128]=arange", "--arg", "f32[128]=zeros")
    found = _by_line(document)
    assert {line: (each["need"], each["together"]) for line, each in found.items()} == {
        6: ("not needed", True),
        7: ("not needed", False),  # one of the two is needed
        9: ("not needed", True),
        11: ("not needed", True),
        12: ("needed", False),
    }
    assert {each["ran"] for each in found.values()} == {128}
    assert "This is evidence of these runs and sizes, not a proof." in document["evidence"]


def test_a_note_about_equal_values_is_no_reason_to_say_nothing(tmp_path: Path) -> None:
    """All threads store the same bit: as in the kernels that Gluon makes."""
    source = SUPERFLUOUS.replace("    a[t] = x[t];", "    __shared__ float flag; flag = x[0];\n    a[t] = x[t];").replace(
        "] + v", "] + v + flag"
    )
    found = _advise(tmp_path, source, "--grid", "1", "--block", "128", "--arg", "f32[128]=arange", "--arg", "f32[128]=zeros")
    assert {line: each["need"] for line, each in found.items()} == {
        7: "not needed",
        8: "not needed",
        10: "not needed",
        12: "not needed",
        13: "needed",
    }


def test_nothing_is_said_of_what_has_unrecorded_accesses_in_its_reach(tmp_path: Path) -> None:
    words = "--grid", "1", "--block", "128", "--arg", "f32[128]=arange", "--arg", "f32[128]=zeros", "--global", "off"
    found = _advise(tmp_path, SUPERFLUOUS, *words)
    assert {line: each["need"] for line, each in found.items()} == {
        6: "not assessed",
        7: "not needed",
        9: "not needed",
        11: "not needed",
        12: "not assessed",
    }
    assert "global accesses in its reach" in found[6]["why"]


SURFACE = """extern "C" __global__ void k(unsigned long long plane, unsigned* out) {
    unsigned x = threadIdx.x, found;
    asm volatile("sust.b.1d.b32.trap [%0, {%1}], %1;" ::"l"(plane), "r"(4 * x) : "memory");
    __syncthreads();
    asm volatile("suld.b.1d.b32.trap %0, [%1, {%2}];" : "=r"(found) : "l"(plane), "r"(4 * (x ^ 32)) : "memory");
    __syncthreads();
    out[x] = found;
}"""


def test_accesses_to_surfaces_are_in_the_log(tmp_path: Path) -> None:
    words = "--grid", "1", "--block", "64", "--arg", "u64=7", "--arg", "u32[64]=zeros"
    found = _advise(tmp_path, SURFACE, *words)
    assert {line: each["need"] for line, each in found.items()} == {4: "needed", 6: "not needed"}
    found = _advise(tmp_path, SURFACE, *words, "--global", "off")
    assert {each["need"] for each in found.values()} == {"not assessed"}


def test_a_barrier_before_a_semaphore_is_never_advised_away(tmp_path: Path) -> None:
    words = "--grid", "2", "--block", "64", "--arg", "f32[128]=zeros", "--arg", "i32[1]=zeros", "--arg", "f32[64]=zeros"
    found = _advise(tmp_path, SEMAPHORE, *words)
    assert all(each["need"] != "not needed" for each in found.values()), found
    assert found[7]["need"] == "not assessed"


@pytest.mark.parametrize(("source", "line"), [(FLAG, 6), (TOTAL, 8)])
def test_a_barrier_beside_a_flag_in_shared_memory_is_never_advised_away(source: str, line: int, tmp_path: Path) -> None:
    """Strong accesses are no race. What they read depends on the barrier all the same."""
    found = _advise(tmp_path, source, "--grid", "1", "--block", "64", "--arg", "i32[64]=arange", "--arg", "i32[64]=zeros")
    assert (found[line]["need"], found[line]["why"].partition(" in its reach")[0]) == ("not assessed", "there is a flag in shared memory")


def test_a_kernel_that_is_not_recorded_has_no_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.cu").write_text(SEMAPHORE)
    words = "--grid", "2", "--block", "64", "--arg", "f32[128]=zeros", "--arg", "i32[1]=zeros", "--arg", "f32[64]=zeros"
    assert main(["advise", str(tmp_path / "k.cu"), *words, "--engine", "inline", "--global", "off"]) == 67
    assert "nothing that synchronises was recorded" in capsys.readouterr().out


def test_a_barrier_between_global_accesses_is_needed_where_they_meet(tmp_path: Path) -> None:
    found = _advise(tmp_path, IN_PLACE, "--grid", "1", "--block", "128", "--arg", "f32[128]=arange")
    assert found[5]["need"] == "needed"


def test_a_warp_barrier_that_serves_convergence_is_not_assessed(tmp_path: Path) -> None:
    found = _advise(tmp_path, CONVERGENCE, "--grid", "1", "--block", "32", "--arg", "i32[32]=zeros")
    assert found[4]["need"] == "not assessed"
    assert "bring the lanes together" in found[4]["why"]


# What the analysis of reaches is without a rule, and a kernel whose statement it then judges in another way: its source, words, and line.
ONE = "--grid", "1", "--block", "128", "--arg", "f32[128]=arange", "--arg", "f32[128]=zeros"
TWO = "--grid", "2", "--block", "64", "--arg", "f32[128]=zeros", "--arg", "i32[1]=zeros", "--arg", "f32[64]=zeros"
WARP = "--grid", "1", "--block", "32", "--arg", "i32[32]=zeros"
SHARED = "--grid", "1", "--block", "64", "--arg", "i32[64]=arange", "--arg", "i32[64]=zeros"


def _made(*, begin: Any = BarrierReach.__init__, **instead: bool) -> Any:
    return lambda self, function, **given: begin(self, function, **{**given, **instead})


PLANTED: dict[str, tuple[str, Any, str, tuple[str, ...], int]] = {
    "global accesses": ("record.analyses.reach.BarrierReach.__init__", _made(global_races=True), SUPERFLUOUS, (*ONE, "--global", "off"), 6),
    "barriers end a reach": ("record.analyses.reach.is_full", lambda _: False, SUPERFLUOUS, (*ONE, "--global", "off"), 9),
    "convergence": ("record.analyses.reach.BarrierReach.together", lambda *_: False, CONVERGENCE, WARP, 4),
    "flags": ("record.analyses.reach.BarrierReach.__init__", _made(flags=False), SEMAPHORE, TWO, 7),
    "flags in shared memory": ("record.analyses.reach.BarrierReach._is_flag", lambda *_: False, FLAG, SHARED, 6),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_planted_in_the_reach_changes_the_list(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    what, faulty, source, words, line = PLANTED[name]
    right = _advise(tmp_path, source, *words)[line]
    monkeypatch.setattr(f"consan.instrument.{what}", faulty)
    wrong = _advise(tmp_path, source, *words)[line]
    assert (wrong["need"], wrong["why"]) != (right["need"], right["why"])


TUTORIAL = Path(__file__).parents[2] / "tutorials" / "09_superfluous_fence"
BULK = "--arch", "sm_90a", "--grid", "4", "--block", "128", "--arg", "f32[1024]=arange", "--arg", "f32[1024]=zeros"


@pytest.mark.parametrize(
    ("name", "terms", "expected"),
    [("kernel", 4, {9: "not needed", 11: "not needed"}), ("kernel", 0, {9: "did not run", 11: "needed"}), ("solution", 4, {10: "needed"})],
)
def test_the_fence_of_the_tutorial(name: str, terms: int, expected: dict[int, str], tmp_path: Path) -> None:
    found = _advise(tmp_path, (TUTORIAL / f"{name}.cu").read_text(), *BULK, "--arg", f"i32={terms}")
    assert {line: each["need"] for line, each in found.items() if "fence" in each["ptx"]} == expected


def test_other_sizes_are_covered_too(tmp_path: Path) -> None:
    also = "--grid 2 --arg f32[512]=arange --arg f32[512]=zeros --arg i32=0"
    document = _document(tmp_path, (TUTORIAL / "kernel.cu").read_text(), *BULK, "--arg", "i32=4", "--also", also)
    found = _by_line(document)
    assert {line: each["need"] for line, each in found.items() if "fence" in each["ptx"]} == {9: "not needed", 11: "needed"}
    assert {each["ran"] for line, each in found.items() if line in (9, 11)} == {4 * 128 * 4, 6 * 128}
    assert document["covered"] == f"covered: 2 launches: grid 4, block 128; also grid 2, block 128 ({also})."


BY_DATA = """
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float a[64];
    int t = threadIdx.x;
    a[t] = x[t];
    __syncthreads();
    out[t] = a[x[0] > 0.5f ? t ^ 32 : t];
}
"""


def test_more_runs_have_other_data(tmp_path: Path) -> None:
    words = "--grid", "1", "--block", "64", "--arg", "f32[64]=random", "--arg", "f32[64]=zeros"
    few, many = (_advise(tmp_path, BY_DATA, *words, "--runs", runs)[6] for runs in ("1", "8"))
    assert (few["need"], few["ran"], many["need"], many["ran"]) == ("not needed", 64, "needed", 512)


UNROLLED = """
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float a[2][64];
    int t = threadIdx.x;
    float v = x[t];
#pragma unroll
    for (int i = 0; i < 3; i++) {
        a[i % 2][t] = v;
        __syncthreads();
        v += a[i % 2][i < 2 ? t ^ 33 : t];
    }
    out[t] = v;
}
"""


def test_the_instructions_of_a_needed_statement_are_judged_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--grid", "1", "--block", "64", "--arg", "f32[64]=arange", "--arg", "f32[64]=zeros"
    (found,) = _advise(tmp_path, UNROLLED, *words).values()
    assert (found["need"], found["instructions"], len(found["free"])) == ("needed", 3, 1)
    assert capsys.readouterr().out == f"verdict: clean; json in {tmp_path / 'advice.json'}\n"
    assert main(["advise", str(tmp_path / "k.cu"), *words]) == 0
    assert f"3 instructions; 1 of them may go: PTX line {found['free'][0]}" in capsys.readouterr().out


def test_the_page_has_the_list(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(SUPERFLUOUS)
    assert main(["advise", str(tmp_path / "k.cu"), *ONE, "-o", str(tmp_path / "a.html")]) == 0
    page = (tmp_path / "a.html").read_text()
    assert "Not needed, alone and together" in page
    assert "<td><code>bar.sync 0;</code></td><td>k.cu:9</td><td>128</td>" in page
    assert "evidence of these runs" in page


@pytest.mark.parametrize(
    "words",
    [("--runs", "0"), ("--also", "--grid"), ("--also", "'"), ("--also", "--cluster 2"), ("--also", "--arch sm_90"), ("-o", "a.sarif")],
)
def test_bad_words_get_one_line(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.cu").write_text(SUPERFLUOUS)
    assert main(["advise", str(tmp_path / "k.cu"), *ONE, *words]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert "Traceback" not in error


LOOSER = """
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float a[128], b[256];
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&b[t]);
    for (int i = 0; i < 2; i++) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to + 512 * i), "l"(__cvta_generic_to_global(x + t)) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    float v = b[t];
    a[t] = v;
    __syncthreads();
    v += a[t ^ 1];
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    out[t] = v + b[128 + t];
}
"""


RING = """
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float ring[STAGES][64];
    int t = threadIdx.x;
    float v = 0;
    auto copy = [&](int i) {
        unsigned to = (unsigned)__cvta_generic_to_shared(&ring[i % STAGES][t]);
        if (i < 12)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(__cvta_generic_to_global(x + 64 * i + t)) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    copy(0);
#pragma unroll 1
    for (int i = 0; i < 12; i++) {
        copy(i + 1);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        v += ring[i % STAGES][63 - t];
        LAST
    }
    out[t] = v;
}
"""


@pytest.mark.parametrize(
    ("stages", "last", "serve"), [(4, "", "3 serve"), (5, "__syncthreads();", "2 serve"), (3, "", ""), (2, "__syncthreads();", "")]
)
def test_stages_that_no_overlap_uses(stages: int, last: str, serve: str, tmp_path: Path) -> None:
    source = RING.replace("STAGES", str(stages)).replace("LAST", last)
    found = _advise(tmp_path, source, "--grid", "1", "--block", "64", "--arg", "f32[768]=arange", "--arg", "f32[64]=zeros")
    lines = [each["why"] for each in found.values() if each["need"] == "stages"]
    assert lines == ([f"{stages} stages of 256 bytes: {serve}"] if serve else [])


def test_unrolled_stages_are_not_named(tmp_path: Path) -> None:
    source = RING.replace("STAGES", "4").replace("LAST", "").replace("#pragma unroll 1", "#pragma unroll")
    found = _advise(tmp_path, source, "--grid", "1", "--block", "64", "--arg", "f32[768]=arange", "--arg", "f32[64]=zeros")
    assert found
    assert all(each["need"] != "stages" for each in found.values())


def test_stages_are_not_judged_where_not_all_is_followed(tmp_path: Path) -> None:
    """A kernel that clears shared memory with st.bulk."""
    clear = 'if (t == 0) asm volatile("st.bulk.weak.shared::cta [%0], 256, 0;" ::"r"((unsigned)__cvta_generic_to_shared(more)) : "memory");'
    source = RING.replace("STAGES", "4").replace("LAST", "").replace("float v = 0;", f"__shared__ float more[64]; float v = 0; {clear}")
    words = "--arch", "sm_100", "--grid", "1", "--block", "64", "--arg", "f32[768]=arange", "--arg", "f32[64]=zeros"
    found = _advise(tmp_path, source, *words)
    assert found
    assert all(each["need"] != "stages" for each in found.values())


@pytest.mark.parametrize("name", ["FILLS", "USES"])
def test_a_fault_planted_in_the_stages_changes_what_serves(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No rings are found, or reads are not followed to their stage."""
    monkeypatch.setattr(f"consan.checker.questions.stages.{name}", ())
    source = RING.replace("STAGES", "4").replace("LAST", "")
    found = _advise(tmp_path, source, "--grid", "1", "--block", "64", "--arg", "f32[768]=arange", "--arg", "f32[64]=zeros")
    assert [each["why"] for each in found.values() if each["need"] == "stages"] != ["4 stages of 256 bytes: 3 serve"]


INITIALISED = """
extern "C" __global__ void k(float* out) {
    __shared__ unsigned long long full;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&full);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(bar) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    out[threadIdx.x] = 1;
}
"""


def test_a_fence_behind_an_init_is_not_assessed(tmp_path: Path) -> None:
    found = _advise(tmp_path, INITIALISED, "--arch", "sm_90a", "--grid", "1", "--block", "32", "--arg", "f32[32]=zeros")
    assert found[7]["need"] == "not assessed"
    assert "initialisation of an mbarrier" in found[7]["why"]
    assert found[11]["need"] == "not needed"


def test_weaker_forms_that_serve_are_named(tmp_path: Path) -> None:
    found = _advise(tmp_path, LOOSER, "--grid", "1", "--block", "128", "--arg", "f32[128]=arange", "--arg", "f32[128]=zeros")
    assert found[10]["weaker"] == ["cp.async.wait_group 1 serves"]
    assert found[13]["weaker"] == ["one of each warp serves (bar.warp.sync)"]
