"""The parts of the adapters for Triton that need no Triton: versions, host memory, parameters, tensor maps, source lines.

tests/adapters_triton runs them with Triton itself.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import consan.triton
from consan._errors import EnvironmentFailure, NotSupported, UsageError
from consan.adapters.base import Patches
from consan.adapters.triton import harness, versions
from consan.adapters.triton.code import moved, ptx_of, settled
from consan.adapters.triton.driver import VirtualDriver
from consan.adapters.triton.host import HostArray, HostMemory, block_of, wrapped
from consan.adapters.triton.launcher import Launcher, tensor_map
from consan.adapters.triton.parameters import identities, leaves, on_gpu
from consan.backends.virtual import VirtualBackend
from consan.launching.placement import Placement
from consan.session.modules.parameters import DeclaredSizes

# -- versions ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def session(notes: list[str]) -> Any:
    return SimpleNamespace(backend=VirtualBackend(), note=notes.append)


def fake_triton(version: str, monkeypatch: pytest.MonkeyPatch, *, without: str = "") -> ModuleType:
    """Modules with all the names that the adapters look up, but one."""
    for module, names in versions._SEAMS.items():
        made = ModuleType(module)
        for name in names:
            first, _, second = name.partition(".")
            if name != without:
                holder = getattr(made, first, None) or SimpleNamespace()
                setattr(made, first, holder)
                if second:
                    setattr(holder, second, object())
        monkeypatch.setitem(sys.modules, module, made)
    triton = ModuleType("triton")
    triton.__version__ = version  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton", triton)
    return triton


@pytest.mark.parametrize("version", ["3.6.0", "3.7.1", "3.9.0+git1234"])
def test_supported_versions(version: str, monkeypatch: pytest.MonkeyPatch, session: Any, notes: list[str]) -> None:
    versions.check(fake_triton(version, monkeypatch), session)
    assert not notes


def test_an_old_version_and_a_missing_seam(monkeypatch: pytest.MonkeyPatch, session: Any) -> None:
    with pytest.raises(NotSupported, match=r"Triton 3\.5\.1 is not supported by consan's adapter, which needs Triton 3\.6 to 3\.9$"):
        versions.check(fake_triton("3.5.1", monkeypatch), session)
    with pytest.raises(NotSupported, match=r"it lacks triton\.testing\.Mark\.run$"):
        versions.check(fake_triton("3.9.0", monkeypatch, without="Mark.run"), session)


def test_a_newer_version_is_noted(monkeypatch: pytest.MonkeyPatch, session: Any, notes: list[str]) -> None:
    versions.check(fake_triton("3.10.0", monkeypatch), session)
    assert notes == ["Triton 3.10.0 is newer than 3.9, the newest that consan was tried with"]


def test_no_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "installed", lambda: False)
    with pytest.raises(EnvironmentFailure, match="Triton is not installed"), consan.triton.cpu():
        pass


# -- host memory -------------------------------------------------------------------------------------------------------------------


def test_views_share_one_copy_that_keeps_their_distance_and_alignment() -> None:
    backend, array = VirtualBackend(), np.arange(100, dtype=np.float32)
    views = [array[4:50], array[60:], array[::-2]]
    placement = Placement(backend)
    memory = HostMemory(placement, [block for view in views if (block := block_of(HostArray(view), "x"))])
    hosts = [HostArray(view).data_ptr() for view in views]
    device = [memory.address(host) for host in hosts]
    assert [d - device[0] for d in device] == [h - hosts[0] for h in hosts]
    assert [d % 16 for d in device] == [h % 16 for h in hosts]
    assert len(memory._placed) == 1
    backend.write(device[1], np.full(40, 7, np.float32))
    placement.copy_back()
    assert (array[60:] == 7).all()
    assert (array[:60] == np.arange(60)).all()
    assert memory.address(0) == 0


def test_read_only_arrays_stay_as_they_are() -> None:
    backend, array = VirtualBackend(), np.zeros(8, np.float32)
    array.flags.writeable = False
    block = block_of(HostArray(array), "x")
    assert block is not None
    placement = Placement(backend)
    backend.write(HostMemory(placement, [block]).address(block.start), np.ones(8, np.float32))
    placement.copy_back()
    assert not array.any()


def test_memory_that_is_unknown() -> None:
    assert block_of(None, "x") is None
    assert block_of(0, "x") is None
    assert block_of(HostArray(np.zeros(0)), "x") is None
    with pytest.raises(UsageError, match=r"^x: a pointer given as a number \(0x10\)"):
        block_of(16, "x")
    with pytest.raises(UsageError, match=r"^x: expected a NumPy array or a torch tensor on the CPU, got str$"):
        block_of("text", "x")
    elsewhere = SimpleNamespace(untyped_storage=None, device=SimpleNamespace(type="cuda", __str__=None))
    with pytest.raises(UsageError, match=r"^x: a tensor on "):
        block_of(elsewhere, "x")


def test_arrays_in_tuples_look_like_tensors() -> None:
    array = np.zeros((3, 4), np.int16)
    one, (two, three) = wrapped((array, (array.T, 5)))
    assert (str(one.dtype), one.stride(), two.stride(0), one.element_size(), one.numel(), three) == ("int16", (4, 1), 1, 2, 12, 5)
    assert wrapped("text") == "text"


# -- parameters --------------------------------------------------------------------------------------------------------------------


def test_tuples_are_flattened_and_constants_left_out() -> None:
    found = list(leaves(["i32", ("*fp32", ("constexpr", "i64"))], [1, (2, (3, 4))], ["a", "b"]))
    assert [(leaf.type, leaf.value, leaf.label) for leaf in found] == [("i32", 1, "a"), ("*fp32", 2, "b[0]"), ("i64", 4, "b[1][1]")]


def parameters(signature: dict[str, Any], values: list[Any], maps: Any = None) -> list[bytes]:
    metadata = SimpleNamespace(name="k", tensordesc_meta=maps)
    launcher = Launcher(SimpleNamespace(session=None), SimpleNamespace(signature=signature), metadata)
    found = list(leaves(launcher._types, values, launcher._labels))
    return list(launcher._parameters(found, Placement(VirtualBackend())))


def test_the_bytes_of_scalars() -> None:
    kinds = {"a": "i32", "b": "u64", "c": "i1", "d": "fp16", "e": "bf16", "f": "fp32", "g": "fp64", "h": "i8", "i": "*fp32"}
    found = parameters(kinds, [-2, 1 << 63, True, 1.5, 1.00390625, 0.1, 0.1, -1, None])
    expected = [b"\xfe\xff\xff\xff", b"\0" * 7 + b"\x80", b"\1", struct.pack("<e", 1.5), b"\x80\x3f", struct.pack("<f", 0.1)]
    assert found == [*expected, struct.pack("<d", 0.1), b"\xff", bytes(8)]
    with pytest.raises(UsageError, match="argument 1: 3000000000000 cannot be passed as i32"):
        parameters({"a": "i32"}, [3_000_000_000_000])
    with pytest.raises(UsageError, match="argument 1: 'text' cannot be passed as fp32"):
        parameters({"a": "fp32"}, ["text"])


def test_parameters_on_a_gpu() -> None:
    tensor = SimpleNamespace(device=SimpleNamespace(type="cuda"), data_ptr=lambda: 4096)
    types, values = ("*fp32", "i32", ("*i8", "constexpr"), "fp32"), [tensor, 7, (64, 9), 1.0]
    words = (4096).to_bytes(8, "little"), (7).to_bytes(4, "little"), (64).to_bytes(8, "little"), struct.pack("<f", 1.0)
    told = SimpleNamespace(global_scratch_size=0, profile_scratch_size=0)

    def found(*sizes: int, types: tuple[Any, ...] = types, values: list[Any] = values, told: Any = told) -> Any:
        return on_gpu(types, values, told, DeclaredSizes(sizes))

    assert found(8, 4, 8, 4) == words
    assert found(8, 4, 8, 4, 8, 8) == (*words, bytes(8), bytes(8))  # there is no scratch memory
    unknown = [
        found(8, 4, 8, 4, 8, 8, 8), found(8, 4, 8), found(8, 8, 8, 4), found(8, 4, 8, 4, 4),  # what the kernel declares
        found(8, 4, 8, 4, values=values[:3]), found(8, 4, 8, 4, values=[tensor, "text", (64, 9), 1.0]),
        found(8, 4, 8, 4, values=[SimpleNamespace(device=SimpleNamespace(type="cpu"), data_ptr=lambda: 4096), *values[1:]]),
        found(8, 4, 8, 4, 8, 8, told=SimpleNamespace(global_scratch_size=16)), found(128, types=("tensordesc<fp16[64]>",), values=[tensor]),
    ]  # fmt: skip
    assert unknown == [None] * len(unknown)


@pytest.mark.parametrize(("flags", "sizes"), [({}, [8, *[8] * 4, 1]), ({"round_f32_to_tf32": False}, [8, *[8] * 4, 1, 1])])
def test_a_descriptor_without_a_map(flags: dict[str, Any], sizes: list[int]) -> None:
    descriptor = SimpleNamespace(base=HostArray(np.zeros((4, 8), np.float32)), shape=[4, 8], strides=[8, 1], padding="nan", **flags)
    found = parameters({"a": "tensordesc<fp32[4, 8]>"}, [descriptor])
    assert [len(value) for value in found] == [*sizes, 4, 4, 8, 8]
    assert [int.from_bytes(value, "little") for value in found[1:6]] == [4, 8, 8, 1, 1]
    assert [int.from_bytes(value, "little") for value in found[-4:]] == [4, 8, 8, 1]


MAP = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [64, 32], "fp4_padded": False}


def test_a_descriptor_with_a_map() -> None:
    descriptor = SimpleNamespace(base=HostArray(np.zeros((64, 96), np.float16)), shape=[64, 96], strides=[96, 1], padding="zero")
    found = parameters({"a": "tensordesc<fp16[64, 32]>"}, [descriptor], [MAP])
    assert [len(value) for value in found] == [128, 4, 4, 8, 8]
    info = tensor_map(descriptor, MAP, 1 << 20)
    assert (info.dtype, info.dims, info.strides, info.box, info.swizzle, info.l2, info.oob) == (
        "f16",
        (96, 64),
        (192,),
        (32, 64),
        128,
        128,
        "zero",
    )
    tf32 = tensor_map(SimpleNamespace(**{**vars(descriptor), "round_f32_to_tf32": True}), {**MAP, "elem_type": 7, "elem_size": 4}, 0)
    assert (tf32.dtype, tf32.strides) == ("tf32", (384,))
    with pytest.raises(NotSupported, match="4-bit"):
        tensor_map(descriptor, {**MAP, "fp4_padded": True}, 0)


def test_an_im2col_descriptor() -> None:
    descriptor = SimpleNamespace(
        shape=[2, 16, 8, 64], strides=[8192, 512, 64, 1], padding="zero", element_strides=[1, 2, 1, 1],
        pixel_box_lower_corner=[-1, 0], pixel_box_upper_corner=[1, 0],
    )  # fmt: skip
    info = tensor_map(descriptor, {**MAP, "block_size": [32, 64], "is_im2col": True}, 0)
    assert (info.pixels, info.channels, info.lower, info.upper, info.element_strides) == (32, 64, (0, -1), (0, 1), (1, 1, 2, 1))


# -- the driver and what is around kernels -----------------------------------------------------------------------------------------


def test_the_driver_names_a_chip_and_no_real_device(session: Any) -> None:
    first, second = VirtualDriver(session, "sm_80"), VirtualDriver(session, "sm_90")
    assert first.get_device_capability() == (8, 0)
    assert first.get_current_device() != second.get_current_device() > 64
    properties = second.utils.get_device_properties()
    assert (properties["max_shared_mem"], properties["warpSize"]) == (232448, 32)
    with pytest.raises(NotSupported, match="expected sm_80, sm_90, sm_100"):
        VirtualDriver(session, "sm_120")


def test_one_configuration_is_run(session: Any, notes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "_misfits", lambda: (MemoryError,))
    tried: list[str] = []

    def run(tuner: Any, *args: Any, **kwargs: Any) -> str:
        tried.extend(tuner.configs)
        if tuner.configs == ["large"]:
            raise MemoryError
        return "result"

    tuner = SimpleNamespace(
        configs=["large", "small", "other"], arg_names=["x"], base_fn=run, prune_configs=lambda kwargs: ["large", "small"]
    )
    assert harness.first_that_fits(session, run, tuner, 1) == "result"
    assert (tried, tuner.configs) == (["large", "small"], ["large", "small", "other"])
    assert notes == ["run is autotuned: it ran with one of 3 configurations (small)"]
    tuner.prune_configs = lambda kwargs: ["large"]
    with pytest.raises(MemoryError):
        harness.first_that_fits(session, run, tuner, 1)


def test_lines_of_inline_assembly_are_one_line_of_python() -> None:
    lines = [
        ".loc 1 7 3",
        "// begin inline asm",
        "  .loc 1 7 3",
        "mov.u32 %r1, 0;",
        "  .loc 1 8 3",
        "ld.u32 %r1, [%rd1];",
        "// end inline asm",
    ]
    after = [".loc 1 8 1", "// begin inline asm", "bar.sync 0;", "// end inline asm"]
    assert settled("\n".join([*lines, *after])).split("\n") == [*lines[:4], "  .loc 1 7 3", *lines[5:], *after]


def test_files_of_a_checkout_that_has_moved(tmp_path: Path) -> None:
    """Triton's cache gives PTX that another checkout compiled. What is still there, or is nowhere, keeps its name."""
    kernel, helper = tmp_path / "new/pkg/kernels/matmul.py", tmp_path / "new/pkg/math.py"
    for file in (kernel, helper):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    before = [tmp_path / "old/pkg/kernels/matmul.py", tmp_path / "old/pkg/math.py", tmp_path / "old/pkg/gone.py", Path(__file__)]
    after = [kernel, helper, before[2], before[3]]
    old, new = ("\n".join(f'\t.file\t{number} "{path}"' for number, path in enumerate(paths, 1)) for paths in (before, after))
    assert moved(old, str(kernel)) == new
    assert moved(new, str(kernel)) == new
    assert moved(old, "") == moved(old, str(before[0])) == old


def test_a_kernel_without_ptx() -> None:
    with pytest.raises(NotSupported, match="k comes without its PTX"):
        ptx_of(SimpleNamespace(asm={}, name="k"))


def test_patches_put_back_what_the_owner_itself_held() -> None:
    class Base:
        @staticmethod
        def inherited() -> str:
            return "base"

    class Owner(Base):
        @staticmethod
        def own() -> str:
            return "own"

    patches = Patches()
    patches.set(Owner, "own", lambda: "new")
    patches.set(Owner, "inherited", lambda: "new")
    assert Owner.own() == Owner.inherited() == "new"
    patches.undo()
    assert isinstance(vars(Owner)["own"], staticmethod)
    assert "inherited" not in vars(Owner)
    assert Owner().inherited() == "base"


def test_arguments_whose_parameters_may_differ_are_told_apart() -> None:
    class Array:
        def data_ptr(self) -> int:
            return 256

    assert identities([1, None, True, Array(), 0.5]) == (1, None, True, 256, (0.5).hex())
    assert identities([0.0]) != identities([-0.0])
    assert identities([object()]) is None
