"""Short phrases about one access: where it stands, who made it, what it touched. For all formats.

`dot` separates the parts of a line. `level`: how much is said (`levels`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

from consan.reports.counts import plural
from consan.reports.formats.levels import DETAILS, ReportLevel
from consan.reports.model import Access, Frame
from consan.reports.source.places import LIBRARY, rank

_ROOTS: Final = re.compile(r"^/.*/(?:include/(?:cccl/)?|(?:site|dist)-packages/)")  # greedy: the innermost folder of headers


def where(access: Access, level: ReportLevel = DETAILS) -> str:
    """`k.cu:5:9 (PTX line 61)`; on a screen `k.cu:5:9`, or `k.cu:5:9 (called at k.cu:43)` in a function that was inlined."""
    if not access.line:
        return f"PTX line {access.ptx_line}" if access.ptx_line else "a line of the program that is not known"
    column = f":{access.column}" if access.column else ""
    more = f"PTX line {access.ptx_line}" if access.ptx_line else ""
    if level < DETAILS:
        more = _called(access)
    return f"{short(access.file)}:{access.line}{column}" + (f" ({more})" if more else "")


def _called(access: Access) -> str:
    """`called at k.cu:43`, if the access is in a function that was inlined there."""
    outermost = access.inlined[-1] if access.inlined else access
    here = (outermost.file, outermost.line) == (access.file, access.line)
    return "" if here else f"called at {os.path.basename(outermost.file)}:{outermost.line}"


def who(access: Access, dot: str = ", ", level: ReportLevel = DETAILS) -> str:
    """`thread (32,0,0), warp 1 lane 0, CTA (0,0,0)`; on a screen without the warp of a thread."""
    lane = "" if access.lane is None else f" lane {access.lane}"
    known = access.thread is not None and level < DETAILS
    parts = (
        access.thread and f"thread {_triple(access.thread)}",
        None if access.warp is None or known else f"warp {access.warp}{lane}",
        access.block and f"CTA {_triple(access.block)}",
        None if access.rank is None else f"rank {access.rank}",
        None if access.cluster_rank is None else f"cluster rank {access.cluster_rank}",
    )
    return dot.join(part for part in parts if part)


def what(access: Access, dot: str = ", ", level: ReportLevel = DETAILS) -> str:
    """`shared bytes 640..643, generic proxy, cp.async group 2`; nothing where no bytes are known: of a barrier, a culprit, a waiter.

    On a screen: `tile[160]`, the element or the bytes.
    """
    if level < DETAILS:
        return access.name or (_range(access) if access.bytes else "")
    if access.space == "tensor":
        return dot.join((access.name, *_async_parts(access)))
    if access.bytes is None and access.space != "register" and access.asynchronous is None:
        return ""
    return dot.join((_range(access), f"{access.proxy} proxy", *_async_parts(access)))


def chain(access: Access) -> Iterator[str]:
    """`at block_reduce.cuh:166:11`, if that is not the line shown; then, outwards, `in block_sum, inlined at reduce.cu:11:9`."""
    if access.innermost:
        yield f"at {_position(access.innermost)}"
    for frame in access.inlined:
        yield (f"in {frame.function}, " if frame.function else "") + f"inlined at {_position(frame)}"


def _position(frame: Frame) -> str:
    return f"{header(short(frame.file))}:{frame.line}:{frame.column}"


def header(file: str) -> str:
    """A library's header as an `#include` names it: `cub/block/block_reduce.cuh`."""
    return file if rank(file, os.getcwd()) != LIBRARY else _ROOTS.sub("", file.replace(chr(92), "/"))


def _range(access: Access) -> str:
    if access.bytes is None:
        return "registers" if access.space == "register" else f"{access.space} memory"
    begin, end = access.bytes
    if access.in_shared:
        numbers = f"shared bytes {begin}..{end - 1}"
        return f"{access.name} ({numbers})" if access.name else numbers
    if access.space == "surface":
        return f"{access.name}, {plural(end - begin, 'byte')}"
    address = f"{access.space} address {begin:#x}, {plural(end - begin, 'byte')}"
    return f"{access.name} ({address})" if access.name else address


def _async_parts(access: Access) -> Iterator[str]:
    action = access.asynchronous
    if action is None:
        return
    name = action.barrier_name
    barrier = ("mbarrier" if name and not name.startswith("byte") else "mbarrier at", name or action.barrier)
    named = (("group", action.group), barrier, ("phase", action.phase))
    yield " ".join([action.kind, *(f"{name} {value}" for name, value in named if value is not None)])


def _triple(value: tuple[int, int, int]) -> str:
    return "({},{},{})".format(*value)


def short(file: str) -> str:
    """A relative path for a file below the working directory: shorter, and still usable in an editor."""
    here = os.getcwd().rstrip(os.sep) + os.sep
    return file[len(here) :] if file.startswith(here) else file
