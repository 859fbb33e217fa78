"""Triton on the GPU under `consan run`: everything that it loads is instrumented, found and clean where it should be, results unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

KERNELS = Path(__file__).parents[1] / "adapters_triton"
HEAD = f"""import sys
sys.path.insert(0, {str(KERNELS)!r})
import torch, triton
import triton_kernels as kernels
from triton.tools.tensor_descriptor import TensorDescriptor
torch.manual_seed(0)
a, b = (torch.randint(-3, 4, shape, device="cuda").half() for shape in ((256, 192), (192, 256)))
c = torch.full((256, 256), float("nan"), device="cuda", dtype=torch.float16)
"""
BLOCKS = "BLOCK_M=64, BLOCK_N=64, BLOCK_K=32"
SAME = "assert torch.equal(c, (a.float() @ b.float()).half())"
ALLOCATOR = "triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device='cuda', dtype=torch.int8))\n"

CLEAN = {
    "add": "x = torch.rand(9999, device='cuda'); out = torch.empty_like(x)\n"
    "kernels.add[lambda meta: (triton.cdiv(9999, meta['BLOCK']),)](x, x, out, 9999, BLOCK=256); assert torch.equal(out, 2 * x)",
    "matmul": f"kernels.matmul[(4, 4)](a, b, c, 192, 192, 1, 256, 1, 256, {BLOCKS}, num_stages=3); {SAME}",
    "matmul_host": "maps = [TensorDescriptor.from_tensor(x, s) for x, s in ((a, [64, 32]), (b, [32, 64]), (c, [64, 64]))]\n"
    f"kernels.matmul_host[(4, 4)](*maps, 192, {BLOCKS}); {SAME}",
    "matmul_device": f"{ALLOCATOR}kernels.matmul_device[(4, 4)](a, b, c, 256, 256, 192, {BLOCKS}); {SAME}",
    "tuned": "x = torch.rand(1000, device='cuda'); out = torch.empty_like(x)\n"
    "kernels.tuned[lambda meta: (triton.cdiv(1000, meta['BLOCK']),)](x, out, 1000); assert torch.equal(out, x)",
    "running_sum": "x = torch.rand(5, 128, device='cuda'); out = torch.empty(128, device='cuda')\n"
    "kernels.running_sum[(1,)](x, out, 5, BLOCK=128, STAGES=3, PENDING=1); torch.testing.assert_close(out, x.sum(0))",
    "warmup": "x = torch.rand(256, device='cuda'); out = torch.empty_like(x)\n"
    "k = kernels.add.warmup(x, x, out, 256, BLOCK=256, grid=(1,)); k[(1, 1, 1)](x, x, out, 256, 256); assert torch.equal(out, 2 * x)",
}
INDUCTOR = """
def f(x):
    return torch.softmax(x * 2 + 1, dim=1)
x = torch.rand(64, 1000, device="cuda")
torch.testing.assert_close(torch.compile(f)(x), f(x))
"""


@pytest.fixture(autouse=True)
def _gpu() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")


def run(folder: Path, script: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """Run a script under consan; the exit status and the report."""
    (folder / "script.py").write_text(HEAD + script + "\n")
    output = folder / "report.json"
    command = [sys.executable, "-m", "consan", "run", "--device", "gpu", "--format", "json", "-o", str(output), "script.py"]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=280, check=False)
    assert output.exists(), done.stderr
    return done.returncode, json.loads(output.read_text())


@pytest.mark.parametrize("name", CLEAN)
def test_clean(name: str, tmp_path: Path) -> None:
    status, report = run(tmp_path, CLEAN[name])
    assert (status, report["verdict"]) == (0, "clean"), report
    assert [kernel["name"] for kernel in report["kernels"]] == [name if name != "warmup" else "add"] * len(report["kernels"])
    assert sum(kernel["launches"] for kernel in report["kernels"]) >= 1
    assert not report["uninstrumented"]


def test_a_missing_wait(tmp_path: Path) -> None:
    status, report = run(tmp_path, CLEAN["running_sum"].split("; torch.testing")[0].replace("PENDING=1", "PENDING=2"))
    assert (status, report["verdict"]) == (66, "violations")
    finding = report["findings"][0]
    assert finding["kind"] == "missing-wait"
    assert all(access["file"].endswith("triton_kernels.py") for access in finding["accesses"])


@pytest.mark.parametrize("workers", ["1", "4"])
def test_inductor(workers: str, tmp_path: Path) -> None:
    caches = {name: str(tmp_path / name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
    status, report = run(tmp_path, INDUCTOR, TORCHINDUCTOR_COMPILE_THREADS=workers, **caches)
    assert (status, report["verdict"]) == (0, "clean"), report
    assert [kernel["name"][:6] for kernel in report["kernels"]] == ["triton"]
    assert report["kernels"][0]["launches"] >= 1
    again, warm = run(tmp_path, INDUCTOR, TORCHINDUCTOR_COMPILE_THREADS=workers, **caches)  # everything comes out of the caches
    assert (again, warm["kernels"][0]["launches"]) == (0, report["kernels"][0]["launches"])


def test_a_mode_of_inductor_that_asks_for_graphs(tmp_path: Path) -> None:
    script = INDUCTOR.replace("torch.compile(f)", "torch.compile(f, mode='reduce-overhead')")
    status, report = run(tmp_path, script, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"))
    assert (status, report["verdict"]) == (0, "clean"), report
    assert {kernel["engine"] for kernel in report["kernels"] if kernel["launches"]} == {"record"}
    assert not [note for note in report["notes"] if "CUDA graphs" in note]


def test_nothing_of_consans_stays_in_a_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    run(tmp_path, CLEAN["running_sum"], TRITON_CACHE_DIR=str(cache))
    cubins = list(cache.rglob("*.cubin"))
    assert cubins
    assert not [path for path in cubins if b"__consan" in path.read_bytes()]


def test_sessions_one_after_another(tmp_path: Path) -> None:
    script = """
import consan
x = torch.rand(256, device="cuda"); out = torch.empty_like(x)
kernels.add[(1,)](x, x, out, 256, BLOCK=256)
for expected in (1, 2):
    with consan.check(device="gpu") as report:
        for _ in range(expected):
            kernels.add[(1,)](x, x, out, 256, BLOCK=256)
    assert [(k.name, k.launches) for k in report.kernels] == [("add", expected)], report
assert torch.equal(out, 2 * x)
"""
    (tmp_path / "script.py").write_text(HEAD + script)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr


TUTORIALS = Path(os.environ.get("CONSAN_TRITON_TUTORIALS", "/nonexistent"))
PERSISTENT = """
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location("persistent", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["persistent"] = module
spec.loader.exec_module(module)
torch.manual_seed(0)
module.validate(32, 32, 32, torch.float16)
module.validate(8192, 8192, 512, torch.float16)
"""


# Triton 3.6 for sm_90, warp_specialize=True: mbarriers that nobody waits for are initialised three times at one place, and their bytes are
# part of a tile then (PTX ISA, mbarrier.init and mbarrier.inval). The result is right.
FOUND = {"matmul_kernel_descriptor_persistent": "barrier-misuse"}


@pytest.mark.slow
@pytest.mark.skipif(not TUTORIALS.is_dir(), reason="CONSAN_TRITON_TUTORIALS does not name a folder")
@pytest.mark.parametrize(
    "words",
    [
        ("01-vector-add.py",),
        ("02-fused-softmax.py",),
        ("03-matrix-multiplication.py",),
        ("05-layer-norm.py",),
        ("-m", "pytest", "-q", "-p", "no:cacheprovider", "06-fused-attention.py", "-k", "1024-2-1"),
        ("-c", PERSISTENT, "09-persistent-matmul.py"),
    ],
    ids=lambda words: next(word for word in words if word.endswith(".py")),
)
def test_tutorials(words: tuple[str, ...], tmp_path: Path) -> None:
    """Unmodified files of Triton's `python/tutorials`; their benchmarks are left out, and of the last one all but its checks."""
    placed = [str(TUTORIALS / word) if word.endswith(".py") else word for word in words]
    options = ["--device", "gpu", "--skip-benchmarks", "-o", "run.json"]
    done = subprocess.run(
        [sys.executable, "-m", "consan", "run", *options, *placed], cwd=tmp_path, capture_output=True, text=True, timeout=3000, check=False
    )
    report = json.loads((tmp_path / "run.json").read_text())
    expected = FOUND if "-c" in words else {}
    assert {finding["kernel"]: finding["kind"] for finding in report["findings"] if finding["severity"] == "error"} == expected
    assert (done.returncode, report["verdict"]) == ((66, "violations") if expected else (0, "clean")), done.stdout + done.stderr
    assert "\N{CROSS MARK}" not in done.stdout
    assert sum(kernel["launches"] for kernel in report["kernels"]) > 0
