"""Chooses the source line shown for an instruction: the user's line in the kernel's own file.

If a function was inlined into a kernel, the useful line is the call in the kernel, not a line of a header. Frames are ranked:

  2  the user's: everything not listed below
  1  a package's or vendored code: below `site-packages`, `third_party` and the like
  0  the CUDA toolkit, CUB, Thrust, libcu++, CUTLASS and CuTe, the libraries of Triton and torch, compiler-generated code

One rule for text, HTML, SARIF, JSON and suppressions (`located`): of the frames of the highest rank, the innermost one that is in the
same file as the outermost one. That file is the kernel's, or the one nearest to it. If all frames have rank 0, the
innermost frame is shown.
If two accesses of a finding would then be at one place, but are in different statements of a helper, both are shown one call further
inward, until they differ (`distinct`).

A file below the working directory is ranked by its path from there, and a library's folder name alone does not make it a library's:
developers of CUTLASS see CUTLASS's lines.

Not handled: calls that were not inlined. PTX does not name the caller.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from consan.reports.model import CULPRIT, Access, Finding, Frame
from consan.reports.source.names import function_name

if TYPE_CHECKING:
    from consan.instrument.sites import Place, Site

LIBRARY, VENDORED, USERS = 0, 1, 2

# Always a library's, also below the working directory, where virtual environments often lie.
_TOOLKIT: Final = re.compile(
    r"""
      /(?:nvidia/(?:cu\d+|cuda_\w+)|cuda(?:-[\d.]+)?|cccl|targets/[\w-]+)/include/  # the toolkit, from a wheel or installed
    | /(?:site|dist)-packages/(?:triton|torch|nvidia|cupy|cutlass|nvidia_cutlass_dsl|numba|numba_cuda)/
    | ^/usr/(?:local/)?include/
    | ^<.*(?:built-in|internal|command-line).*>$
    """,
    re.VERBOSE,
)
# A library's unless the file is part of the user's project.
_LIBRARIES: Final = re.compile(
    r"""
      /cub/(?:block|warp|thread|device|agent|detail|grid|iterator|util_\w+)\b
    | /thrust/(?:detail|system|iterator)/ | /libcudacxx/ | /cuda/(?:std|experimental|__\w+)/ | /cooperative_groups(?:\.h|/)
    | /(?:cutlass|cute)/(?:\w+/)*\w+\.(?:h|hpp|cuh|inl|py)$ | /(?:python/)?triton/(?:language|experimental|tools)/
    | (?:^|/)(?:cuda_pipeline\w*|cuda_awbarrier\w*|cuda_(?:fp|bf)\w+|sm_\d+_\w+|device_\w*functions|crt/\w+|mma)\.(?:h|hpp)$
    """,
    re.VERBOSE,
)
# Copies of others' code inside a project: by the usual folders, or a checkout of CUTLASS or CCCL (`csrc/cutlass/include/cute/...`).
_COPIES: Final = re.compile(
    r"/(?:(?:site|dist)-packages|third[_-]?party|3rdparty|external|extern|vendor|_deps|submodules)/"
    r"|/(?:cutlass|cccl)/(?:[\w.-]+/)*?include/(?:cute|cutlass|cub|thrust|cuda)/"
)

WAITS: Final = "waits here"  # the role of a place where threads wait
MAX_PLACES: Final = 3  # such places that are shown with their source
_PLACE: Final = ("file", "line", "column", "ptx_line", "ptx")  # the keys of a waiter that say where it is


def located(place: Place | Site) -> dict[str, Any]:
    """The fields of an `Access` for its place: the user's line, the innermost line if different, and the whole chain."""
    chain = tuple(Frame(function_name(f.function or ""), f.file, f.line, f.column) for f in place.inlined)
    innermost = Frame(chain[0].function if chain else "", place.file or "", place.line or 0, place.column or 0)
    shown = users_frame((innermost, *chain))
    return {
        "file": shown.file,
        "line": shown.line,
        "column": shown.column,
        "ptx_line": place.ptx_line,
        "ptx": place.ptx,
        "innermost": None if shown is innermost else innermost,
        "inlined": chain,
    }


def shown_at(place: Place | Site) -> dict[str, Any]:
    """The place of a waiter: the user's line and the PTX line."""
    return {name: value for name, value in located(place).items() if name not in ("innermost", "inlined")}


def users_frame(chain: tuple[Frame, ...]) -> Frame:
    """The frame that is shown, of a chain from the innermost frame outwards."""
    return (_users_frames(chain) or chain)[0]


def _users_frames(chain: tuple[Frame, ...]) -> list[Frame]:
    """The frame that is shown, then the user's frames inside it, from the call inwards."""
    ranks = [rank(frame.file, os.getcwd()) if frame.line else -1 for frame in chain]
    users = [frame for frame, each in zip(chain, ranks, strict=True) if each == max(ranks)]
    if max(ranks) <= LIBRARY:
        return users[:1]
    home = next(index for index, frame in enumerate(users) if frame.file == users[-1].file)
    return users[home::-1]


def distinct(accesses: tuple[Access, ...]) -> tuple[Access, ...]:
    """The accesses, with those that share their place but not their statement shown further inward, as far as the user's frames go."""
    inner = [_users_frames(_chain(access))[1:] for access in accesses]
    while overlapping := [n for n, access in enumerate(accesses) if inner[n] and any(_meet(access, other) for other in accesses)]:
        accesses = tuple(_shown_at(access, inner[n].pop(0)) if n in overlapping else access for n, access in enumerate(accesses))
    return accesses


def _meet(one: Access, other: Access) -> bool:
    """Whether two accesses have one place and come from different lines."""
    if (one.file, one.line, one.column) != (other.file, other.line, other.column):
        return False
    return _lines(one) != _lines(other)


def _lines(access: Access) -> list[tuple[str, int]]:
    return [(frame.file, frame.line) for frame in _chain(access)]


def _chain(access: Access) -> tuple[Frame, ...]:
    return (access.innermost or Frame("", access.file, access.line, access.column), *access.inlined)


def _shown_at(access: Access, frame: Frame) -> Access:
    innermost = None if frame == access.innermost else access.innermost
    return replace(access, file=frame.file, line=frame.line, column=frame.column, innermost=innermost)


@lru_cache(maxsize=4096)
def rank(file: str, project: str) -> int:
    """The rank of a file. `project` is the user's working folder."""
    path, here = file.replace("\\", "/"), project.replace("\\", "/").rstrip("/") + "/"
    inside = path.startswith(here) or (not path.startswith(("/", "<")) and os.path.exists(path))
    path = "/" + path.removeprefix(here) if inside or not path.startswith(("/", "<")) else path
    if _TOOLKIT.search(path):
        return LIBRARY
    copied = bool(_COPIES.search(path))
    if _LIBRARIES.search(path) and (copied or not inside):
        return LIBRARY
    return VENDORED if copied else USERS


def steps(access: Access) -> Iterator[tuple[str, int]]:
    """The source lines of an access: the shown one first, then from the innermost outwards."""
    frames = (access, *([access.innermost] if access.innermost else ()), *access.inlined)
    yield from dict.fromkeys((frame.file, frame.line) for frame in frames if frame.file and frame.line)


def waiting_places(finding: Finding) -> list[Access]:
    """The places at which threads wait, of a finding without accesses: each once, at most MAX_PLACES."""
    if finding.pair:
        return []
    waiters = ({name: waiter[name] for name in _PLACE if waiter.get(name)} for waiter in finding.waiters)
    places = {tuple(known.values()): known for known in waiters if known}
    return [Access(WAITS, opcode_of(str(known.get("ptx", ""))), **known) for known in list(places.values())[:MAX_PLACES]]


def culprit_at(at: Place, opcode: str = "") -> Access:
    """An instruction at fault as an access."""
    return Access(role=CULPRIT, op=opcode or at.opcode, proxy="none", space="none", **located(at))


def opcode_of(ptx: str) -> str:
    """`bar.sync` of `@%p1 bar.sync 0;`."""
    return next((word for word in ptx.rstrip(";").split() if not word.startswith("@")), "")
