"""Triton's launcher for the virtual machine: computes the bytes of each parameter and launches through the session.

Read in `backends/nvidia/driver.py` and `driver.c` of Triton 3.6 and 3.9. Parameters go in the order of the signature: constants not at
all, tuples item by item, numbers as their type says, pointers as addresses. A tensor descriptor is, where the kernel copies through a
tensor map (sm_90), the map by value, then its shape (i32 each) and strides (i64 each); elsewhere pointer, shape, strides (i64 each), a byte
for each flag, and shape and strides again. After the last argument come two pointers, global and profiler scratch.

A launch has ended when the next one starts; the session compares those that may run at the same time
(consan/session/comparing/program_streams.py).

Does NOT handle: profiler scratch, which Proton's intra-kernel instrumentation asks for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from consan._errors import NotSupported
from consan.adapters.triton.code import framework_of_source
from consan.adapters.triton.host import HostMemory, block_of, without_modes, wrapped
from consan.adapters.triton.parameters import Leaf, leaves, number_bytes
from consan.adapters.triton.ranks import RankLaunch, blocks
from consan.backends.base import Dim3
from consan.dataclass import dataclass
from consan.launching.placement import OnDevice, Placement, placed, pointer
from consan.ranks.crew import current
from consan.session.comparing.launch_memory import Copied, LaunchShape, Memory
from consan.session.modules.layouts import NamedBuffers
from consan.tensormap.description import DTYPES, SWIZZLES, TensorMapInfo

_BY_PTX = {dtype.ptx: dtype for dtype in DTYPES.values()}
_L2_PROMOTION = 128


@dataclass(frozen=True)
class Code:
    """The value of `kernel.function` on the virtual machine."""

    name: str
    ptx: str


class DriverLike(Protocol):
    """The driver, which knows the current session."""

    session: Any


class Launcher:
    """Created by Triton once for each compiled kernel, as `driver.launcher_cls(src, metadata)`."""

    def __init__(self, driver: DriverLike, src: Any, metadata: Any) -> None:
        self._driver = driver
        self._types = tuple(src.signature.values())
        names = getattr(getattr(src, "fn", None), "arg_names", None) or [f"argument {i}" for i in range(1, len(self._types) + 1)]
        self._labels = [f"{metadata.name}: {name}" for name in names]
        self._maps: Sequence[Mapping[str, Any]] = getattr(metadata, "tensordesc_meta", None) or ()
        self.metadata = metadata
        self.framework = framework_of_source(src)

    def __call__(
        self, x: int, y: int, z: int, stream: Any, function: Code, packed: Any, metadata: Any, enter: Any, leave: Any, *args: Any
    ) -> None:
        """Launch. The hooks are Triton's own."""
        if enter is not None:
            enter(metadata)
        given = [wrapped(value) for value in args]
        if x * y * z > 0 and (crew := current()) is not None:
            session = self._driver.session
            where = session.streams.of(int(stream or 0))
            crew.launch(RankLaunch(self, session, (x, y, z), function.name, function.ptx, given, where), function.name)
        elif x * y * z > 0:
            self._launch((x, y, z), int(stream or 0), function, given)
        if leave is not None:
            leave(metadata)

    def _launch(self, grid: Dim3, stream: int, function: Code, args: Sequence[Any]) -> None:
        session, metadata = self._driver.session, self.metadata
        found = self.leaves(args)
        prepared = session.prepare(function.ptx, name=function.name)
        prepared.framework = self.framework
        with without_modes(), session.streams.lock, placed(session) as placement:
            values = list(self._parameters(found, placement))
            count = len(prepared.loaded.entry(function.name).params)
            values += self.scratch(placement, grid, count - len(values))
            ctas = int(getattr(metadata, "num_ctas", 1))
            memory = Memory([Copied(*each) for each in placement.copies], shared=False, owners=args)
            shape = LaunchShape(function.name, (grid[0] * ctas, grid[1], grid[2]), (metadata.num_warps * 32, 1, 1), memory)
            if self._run(prepared, shape, ctas, values, NamedBuffers(tuple(placement.buffers))):
                programmatic = bool(getattr(metadata, "launch_pdl", False))
                session.streams.launched(prepared, shape, session.streams.of(stream), programmatic=programmatic)

    def _run(self, prepared: Any, shape: LaunchShape, ctas: int, values: list[bytes], names: NamedBuffers) -> bool:
        metadata = self.metadata
        checked: bool = self._driver.session.launch(
            prepared,
            shape.entry,
            shape.grid,
            shape.block,
            values,
            shared=metadata.shared,
            cluster=(ctas, 1, 1),
            cooperative=bool(getattr(metadata, "launch_cooperative_grid", False)),
            address_name=names,
        )
        return checked

    def _parameters(self, found: Sequence[Leaf], placement: Placement) -> Iterator[bytes]:
        return self.values(found, HostMemory(placement, blocks(found)), placement)

    def values(self, found: Sequence[Leaf], memory: HostMemory, placement: Placement, of: str = "") -> Iterator[bytes]:
        """The bytes of each parameter; `of`: what stands before the names of arguments."""
        maps = iter(self._maps)
        for leaf in found:
            label, name = self._name(leaf)
            label = of + label
            compiled = next(maps) if self._maps and leaf.is_descriptor else None
            yield from (placement.parameter(value, label, name) for value in _values(leaf, compiled, memory, placement))

    def leaves(self, args: Sequence[Any]) -> list[Leaf]:
        """The arguments, one by one."""
        return list(leaves(self._types, args, self._labels))

    def scratch(self, placement: Placement, grid: Dim3, count: int) -> list[bytes]:
        """So many pointers that follow the arguments."""
        return _scratch(placement, self.metadata, grid, count)

    def _name(self, leaf: Leaf) -> tuple[str, str]:
        """The name of an argument in reports; an item of a tuple has the number of the tuple."""
        number = next(i for i, known in enumerate(self._labels, 1) if leaf.label == known or leaf.label.startswith(f"{known}["))
        return f"argument {number}", leaf.label.removeprefix(f"{self.metadata.name}: ")


def _scratch(placement: Placement, metadata: Any, grid: tuple[int, int, int], count: int) -> list[bytes]:
    """The `count` pointers that follow the arguments: global scratch, profiler scratch."""
    if getattr(metadata, "profile_scratch_size", 0):
        raise NotSupported(f"{metadata.name} was instrumented by Proton, whose scratch memory the virtual machine does not have")
    ctas = grid[0] * grid[1] * grid[2] * int(getattr(metadata, "num_ctas", 1))
    size = int(metadata.global_scratch_size or 0) * ctas
    if size and count > 0:
        _ask_for_scratch(size, metadata.global_scratch_align)
    return [placement.parameter(pointer(placement.scratch(size) if size and not i else 0)) for i in range(count)]


def _ask_for_scratch(size: int, alignment: int) -> None:
    """Raises as on a GPU if the program has set no allocator."""
    _allocation = importlib.import_module("triton.runtime._allocation")
    allocator = _allocation._allocator.get()
    if isinstance(allocator, _allocation.NullAllocator):
        allocator(size, alignment, 0)


def _values(leaf: Leaf, compiled: Mapping[str, Any] | None, memory: HostMemory, placement: Placement) -> Iterator[bytes | OnDevice]:
    """The parameters of an argument. `compiled`: of a tensor descriptor that becomes a tensor map."""
    if leaf.is_descriptor:
        yield from _descriptor(leaf, compiled, memory, placement)
    else:
        yield _reference(leaf, memory) if leaf.refers else number_bytes(leaf.type, leaf.value, leaf.label)


def _reference(leaf: Leaf, memory: HostMemory) -> OnDevice:
    """The pointer of an argument, and the memory that the program may reach by it."""
    host = 0 if leaf.base is None or isinstance(leaf.base, int) else int(leaf.base.data_ptr())
    block = block_of(leaf.base, leaf.label)
    found = pointer(memory.address(host))
    if block is None:
        return found
    return replace(found, begin=memory.address(block.start), nbytes=block.end - block.start, element=_element(leaf.base))


def _element(base: Any) -> int:
    """Bytes of an element of a tensor; 1 where it has none."""
    return int(base.element_size()) if hasattr(base, "element_size") else 1


# -- tensor descriptors --------------------------------------------------------------------------------------------------------------


def _descriptor(leaf: Leaf, compiled: Mapping[str, Any] | None, memory: HostMemory, placement: Placement) -> Iterator[bytes | OnDevice]:
    descriptor, base = leaf.value, _reference(leaf, memory)
    shape, strides = [int(extent) for extent in descriptor.shape], [int(step) for step in descriptor.strides]
    if compiled is None:
        yield base
        yield from _numbers("i64", [*shape, *strides], leaf.label)
        yield from _numbers("i1", _flags(descriptor), leaf.label)
    else:
        address = memory.address(descriptor.base.data_ptr())
        yield replace(base, data=placement.tensor_map(tensor_map(descriptor, compiled, address)))
    yield from _numbers("i32", shape, leaf.label)
    yield from _numbers("i64", strides, leaf.label)


def _flags(descriptor: Any) -> list[int]:
    rounds = getattr(descriptor, "round_f32_to_tf32", None)  # since 3.7
    return [int(descriptor.padding == "nan"), *([] if rounds is None else [int(rounds)])]


def _numbers(kind: str, values: Sequence[int], label: str) -> Iterator[bytes]:
    return (number_bytes(kind, value, label) for value in values)


def tensor_map(descriptor: Any, compiled: Mapping[str, Any], address: int) -> TensorMapInfo:
    """The map that Triton's launcher encodes. `compiled` comes from the compiler (swizzle, element, box)."""
    element = _BY_PTX.get(compiled["elem_type"])
    if element is None or compiled.get("fp4_padded"):
        raise NotSupported(
            f"a tensor descriptor with elements of type {compiled['elem_type']}: consan knows no tensor maps of 4-bit elements"
        )
    if getattr(descriptor, "round_f32_to_tf32", False):
        element = DTYPES["tf32"]
    rank = len(descriptor.shape)
    box: tuple[int, ...] = tuple(int(extent) for extent in compiled["block_size"])[::-1]
    shape: dict[str, Any] = {"box": box, "element_strides": (1,) * rank}
    if compiled.get("is_im2col"):
        channels, pixels = box
        corners = {name: tuple(getattr(descriptor, f"pixel_box_{name}_corner"))[::-1] for name in ("lower", "upper")}
        steps = tuple(descriptor.element_strides or (1,) * rank)[::-1]
        shape = {"box": (), "element_strides": steps, "im2col": True, "channels": channels, "pixels": pixels, **corners}
    return TensorMapInfo(
        dtype=element.name,
        address=address,
        dims=tuple(int(extent) for extent in descriptor.shape)[::-1],
        strides=tuple(int(step) * int(compiled["elem_size"]) for step in descriptor.strides)[-2::-1],
        swizzle=SWIZZLES[compiled["swizzle"]],
        l2=_L2_PROMOTION,
        oob="nan" if descriptor.padding == "nan" else "zero",
        **shape,
    )
