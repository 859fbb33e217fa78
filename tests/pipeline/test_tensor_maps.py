"""consan.TensorMap and `--arg tma:...`: maps of arrays, launched on the virtual machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan
from consan.__main__ import main
from consan._errors import UsageError
from consan.tensormap.encoding import decode

# One warp: loads a box of `in`, adds `n` to each element, stores the box at the same place of `out`.
SOURCE = """
struct alignas(64) Map { unsigned char bits[128]; };
extern "C" __global__ void add(const __grid_constant__ Map in, const __grid_constant__ Map out, unsigned n) {
    __shared__ alignas(1024) unsigned box[256];
    __shared__ unsigned long long bar;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(box));
    const unsigned mbar = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(mbar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(mbar) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                     :: "r"(at), "l"(&in), "r"(mbar), "r"(32), "r"(int(blockIdx.x) * 8) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W; }" :: "r"(mbar) : "memory");
    for (unsigned i = threadIdx.x; i < 256; i += 32) box[i] += n;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%1, {%2, %3}], [%0];"
                     :: "r"(at), "l"(&out), "r"(32), "r"(int(blockIdx.x) * 8) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
"""
BOX: Any = {"box": (8, 32), "swizzle": 128}


@pytest.fixture(scope="module")
def kernel() -> consan.Kernel:
    return consan.Kernel(SOURCE, entry="add")


def launch(kernel: consan.Kernel, *args: Any, seed: int = 0) -> consan.Report:
    return consan.launch(kernel, grid=2, block=32, args=args, device="cpu", seed=seed)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_arrays_of_maps_change_in_place(kernel: consan.Kernel, seed: int) -> None:
    source, target = np.arange(20 * 64, dtype=np.uint32).reshape(20, 64), np.zeros((12, 64), np.uint32)
    launch(kernel, consan.TensorMap(source, **BOX), consan.TensorMap(target, **BOX), 5, seed=seed)
    assert (target[:, 32:] == source[:12, 32:] + 5).all(), "the last four rows of the second box are outside of the target"
    assert not target[:, :32].any()


def test_two_maps_of_one_array_share_its_copy(kernel: consan.Kernel) -> None:
    array = np.zeros((16, 64), np.uint32)
    launch(kernel, consan.TensorMap(array, **BOX), consan.TensorMap(array, **BOX), 7)
    assert (array[:, 32:] == 7).all()


def test_a_view_with_gaps_is_copied_without_them(kernel: consan.Kernel) -> None:
    base = np.zeros((16, 128), np.uint32)
    view = base[:, ::2]
    launch(kernel, consan.TensorMap(view, **BOX), consan.TensorMap(view, **BOX), 7)
    assert (base[:, 64::2] == 7).all()
    assert base.sum() == 16 * 32 * 7


def test_a_map_needs_a_parameter_of_its_size(kernel: consan.Kernel) -> None:
    tensor = consan.TensorMap(np.zeros((16, 64), np.uint32), **BOX)
    with pytest.raises(UsageError, match="a tensor map has 128 bytes, its parameter 4: expected const __grid_constant__ CUtensorMap"):
        launch(kernel, tensor, tensor, tensor)


def test_from_the_command_line(tmp_path: Path) -> None:
    file, out = tmp_path / "add.cu", tmp_path / "report.json"
    file.write_text(SOURCE)
    maps = [f"--arg=tma:u32[20,64]={init},box=8x32,swizzle=128" for init in ("arange", "zeros")]
    main(["check", str(file), "--device", "cpu", "--grid", "2", "--block", "32", *maps, "--arg=i32=5", "-o", str(out), "--format", "json"])
    report = json.loads(out.read_text())
    assert [each["name"] for each in report["kernels"]] == ["add"]
    assert not [finding for finding in report["findings"] if finding["kind"] in ("out-of-bounds", "deadlock")]


class DeviceArray:
    """An array of the device, as CuPy and PyTorch show it."""

    def __init__(self, shape: tuple[int, ...], typestr: str, strides: tuple[int, ...] | None = None, address: int = 1 << 40) -> None:
        self.__cuda_array_interface__ = {"shape": shape, "typestr": typestr, "strides": strides, "data": (address, False), "version": 3}


def test_device_arrays_are_described_where_they_are() -> None:
    made = consan.TensorMap(DeviceArray((9, 100), "<f2", (256, 2)), (3, 64), dtype="bf16", l2=128, oob="nan", element_strides=(2, 1))
    assert made.on_device
    info = made.info
    assert (info.address, info.dims, info.strides, info.box) == (1 << 40, (100, 9), (256,), (64, 3))
    assert (info.dtype, info.l2, info.oob, info.element_strides) == ("bf16", 128, "nan", (1, 2))


def test_im2col() -> None:
    info = consan.TensorMap.im2col(np.zeros((2, 9, 7, 64), np.float16), (-1, 0), (2, 1), 64, 32, swizzle=128).info
    assert (info.dims, info.strides) == ((64, 7, 9, 2), (128, 896, 8064))
    assert (info.lower, info.upper, info.channels, info.pixels, info.im2col) == ((0, -1), (1, 2), 64, 32, True)


@pytest.mark.parametrize(
    ("numpy", "dtype", "word"),
    [
        *(("u1", None, "u8"), ("i1", None, "u8"), ("u2", None, "u16"), ("f2", None, "f16"), ("i4", None, "s32"), ("f8", None, "f64")),
        *(("u2", "bf16", "bf16"), ("u1", "e4m3", "u8"), ("f4", "tf32", "tf32"), ("f4", "f32.ftz", "f32.ftz"), ("i8", None, "s64")),
    ],
)
def test_element_types(numpy: str, dtype: str | None, word: str) -> None:
    assert consan.TensorMap(np.zeros((2, 64), numpy), (2, 16), dtype=dtype).info.dtype == word


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: consan.TensorMap([1, 2], (2,)), "expected a NumPy array or one with __cuda_array_interface__, got list"),
        (lambda: consan.TensorMap(np.zeros((0, 4), "f4"), (1, 4)), "no elements to describe"),
        (lambda: consan.TensorMap(np.zeros((4, 4), "c8"), (1, 4)), "elements of complex64 need a dtype="),
        (lambda: consan.TensorMap(np.zeros((4, 4), "f4"), (1, 4), dtype="bf16"), "bf16 has 2 bytes, an element of the array 4"),
        (lambda: consan.TensorMap(np.zeros((4, 4), "f4"), (1, 4), dtype="f5"), "unknown dtype 'f5'"),
        (lambda: consan.TensorMap(np.zeros((4, 4), "f4"), "ab"), "box is 'ab', expected whole numbers"),
        (lambda: consan.TensorMap(np.zeros((4, 4), "f4"), (4,)), "one size for each of 2 dimensions"),
        (lambda: consan.TensorMap(np.zeros((4, 3), "f4"), (1, 4)), "strides (12,): expected multiples of 16 bytes"),
        (lambda: consan.TensorMap(DeviceArray((4, 4), "<f4", (64, 8)), (1, 4)), "the innermost stride is 8 bytes, expected 4"),
        (lambda: consan.TensorMap(DeviceArray((4, 4), "<f4", None, 8), (1, 4)), "address 0x8: expected a multiple of 16"),
        (lambda: consan.TensorMap.im2col(np.zeros((4, 4, 4), "f4"), (0,), (0,), 4, 4, oops=1), "unknown option oops"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert message in str(caught.value)


def test_the_backend_encodes_what_the_map_says() -> None:
    from consan.backends.virtual import VirtualBackend

    made = consan.TensorMap(np.zeros((16, 64), np.uint32), **BOX)
    assert decode(VirtualBackend().tensor_map(made.at(4096))) == made.at(4096)


IN_STRUCT = SOURCE.replace(
    "const __grid_constant__ Map in, const __grid_constant__ Map out, unsigned n) {",
    "const __grid_constant__ Params p) { const Map &in = p.in, &out = p.out; const unsigned n = p.n;",
).replace('extern "C"', 'struct Params { int* unused; Map in, out; unsigned n; };\nextern "C"')


def test_maps_within_a_struct(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As CUTLASS's kernels take them: all parameters are one opaque struct."""
    file, words = tmp_path / "k.cu", "box=8x32,swizzle=128"
    file.write_text(IN_STRUCT)
    maps = f"tma:u32[16,64]=arange,{words};tma:u32[16,64]=zeros,{words}"
    launch = ["check", str(file), "--device", "cpu", "--grid", "2", "--block", "32"]
    assert main([*launch, "--arg", f"struct:i32[4]=zeros;{maps};u32=5"]) == 0
    racy = tmp_path / "racy.cu"
    racy.write_text(IN_STRUCT.replace('    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");\n', ""))
    launch[1] = str(racy)
    assert main([*launch, "--arg", f"struct:bytes={'00' * 8};{maps};u32=5@320"]) == 66
    assert "missing-proxy-fence" in capsys.readouterr().out
    assert main([*launch, "--arg", f"struct:{maps};u32=5@255"]) == 2
    assert "expected struct:SPEC;SPEC@OFFSET" in capsys.readouterr().err
