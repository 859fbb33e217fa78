"""torch tensors as arguments, and its device "cuda" as the CPU. Skipped where Triton or torch is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import consan.triton
from consan._errors import UsageError

triton = pytest.importorskip("triton", reason="Triton is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
import triton_kernels as kernels  # noqa: E402 - needs Triton

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")


def test_tensors_and_views_of_one_storage() -> None:
    x = torch.arange(512, dtype=torch.float32, requires_grad=True)
    halves = x.detach()[:256], x.detach()[256:]
    with consan.triton.cpu() as report:
        kernels.add[(1,)](*halves, halves[0], 256, BLOCK=256)
    assert torch.equal(halves[0], torch.arange(256) * 2.0 + 256)
    assert report.verdict == "clean"


def test_half_precision_tensors_in_descriptors() -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    a, b = torch.randint(-3, 4, (64, 96)).bfloat16(), torch.randint(-3, 4, (96, 64)).bfloat16()
    c = torch.zeros(64, 64, dtype=torch.float16)
    with consan.triton.cpu() as report:
        maps = [TensorDescriptor.from_tensor(x, block) for x, block in ((a, [64, 32]), (b, [32, 64]), (c, [64, 64]))]
        kernels.matmul_host[(1, 1)](*maps, 96, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    assert torch.equal(c, (a.float() @ b.float()).half())
    assert report.verdict == "clean"


def test_the_compiled_kernel_can_be_launched() -> None:
    x, out = torch.rand(256), torch.zeros(256)
    with consan.triton.cpu() as report:
        kernel = kernels.add.warmup(x, x, out, 256, BLOCK=256, grid=(1,))
        kernel._init_handles()
        assert kernel.n_regs > 0
        kernel[(1, 1, 1)](x, x, out, 256, 256)
    assert torch.equal(out, 2 * x)
    assert report.kernels[0].launches == 1


def test_a_tensor_elsewhere_is_refused() -> None:
    x = torch.empty(256, device="meta")
    with consan.triton.cpu(), pytest.raises(UsageError, match=r"add: x_ptr: a tensor on 'meta'; .* tensors on the CPU"):
        kernels.add[(1,)](x, x, x, 256, BLOCK=256)


SCRIPT = """
import torch, triton, triton.language as tl
from triton_kernels import add
DEVICE = triton.runtime.driver.active.get_active_torch_device()
x = torch.rand(300, device="cuda")
out = torch.empty_like(x).cuda()
assert x.device == DEVICE and torch.zeros(1).to(torch.device("cuda", 0)).device == DEVICE
assert torch.cuda.get_device_capability() == (8, 0)
assert torch.cuda.get_device_properties("cuda").multi_processor_count > 0
add[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, x, out, 300, BLOCK=128)
torch.cuda.synchronize()
assert torch.equal(out, 2 * x)
"""


def test_a_script_on_device_cuda_runs_unchanged(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{SCRIPT}")
    command = [sys.executable, "-m", "consan", "run", "--device", "cpu", "--triton-arch", "sm_80", "-o", "run.json", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'device "cuda" is the CPU' in done.stdout.replace("\n", " ")
    assert "1 kernel, 1 launch on cpu" in done.stdout


def test_the_device_is_put_back() -> None:
    before = torch.cuda.get_device_capability, torch.cuda.Event
    with consan.triton.cpu():
        assert torch.zeros(1, device="cuda").device.type == "cpu"
    assert (torch.cuda.get_device_capability, torch.cuda.Event) == before
    if not torch.cuda.is_available():
        with pytest.raises((AssertionError, RuntimeError)):
            torch.zeros(1, device="cuda")
