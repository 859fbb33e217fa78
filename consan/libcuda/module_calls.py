"""Calls about modules and libraries, and the kernels in them. A library is a module; a CUkernel is a CUfunction.

Only PTX runs here. From a fat binary the newest PTX is taken; machine code alone is refused with a sentence. A program whose device code
was linked (`nvcc -rdc=true`) names the fat binaries from which it was: their PTX is joined.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from consan._errors import ConsanError
from consan.dataclass import dataclass
from consan.instrument.ptx import Function, parse
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, accepted, serves
from consan.libcuda.driver import KeptPtx, StandInDriver
from consan.libcuda.texts.built import know_source
from consan.libcuda.texts.device_runtime import with_device_runtime
from consan.libcuda.texts.places import with_places
from consan.libcuda.texts.united import unite
from consan.toolchain import fatbin

_WRAPPER: Final = b"\xb1\x43\x62\x46"  # what nvcc's host code gives: magic, version, address of the fat binary
_LINKED: Final = 2  # the version of a wrapper behind whose address stands that of a table: fat binaries, and zero
_HEAD: Final = struct.Struct("<4sHHQ")
_ELF: Final = b"\x7fELF"
_NO_PTX: Final = "the module is machine code; the virtual machine runs PTX only: compile to PTX, as -arch=compute_90 does"
_ENTRY: Final = re.compile(r"\.entry\s+([\w$]+)")
_VARIABLE: Final = re.compile(r"^\s*(?:\.\w+\s+)*\.(?:global|const)\b", re.MULTILINE)
_loaded: Final[Counter[bytes]] = Counter()  # how often texts with variables were
_LIMIT, _SHARED, _DYNAMIC = 1024, 1, 8  # threads of a block; CUfunction_attribute: static shared memory, the limit of dynamic shared memory
_OPTIN: Final = 232448


@dataclass(eq=False)
class LoadedKernel:
    """A kernel of a module, and the attributes that the program has set."""

    module: DriverModule
    function: Function
    handle: int = 0
    attributes: dict[int, int] = field(default_factory=lambda: {0: _LIMIT, _DYNAMIC: 49152})


@dataclass(eq=False)
class DriverModule:
    """A module of the program."""

    prepared: Any
    kernels: dict[str, LoadedKernel] = field(default_factory=dict)
    handle: int = 0


def _with_own_variables(text: str) -> str:
    """A text that no other module has, if it has variables: each module has its own, also those of another process of the program."""
    if _VARIABLE.search(text) is None:
        return text
    _loaded[key := digest(text.encode())] += 1
    return text if _loaded[key] == 1 else f"{text}\n// loaded again: {_loaded[key]}\n"


def _load(driver: StandInDriver, text: str, name: str) -> int:
    module = parse(_with_own_variables(with_places(with_device_runtime(text), driver.kept_ptx.places)), name)
    made = DriverModule(driver.session.prepare(module, name=name))
    know_source(driver.session.unoptimised, made.prepared.plain, text)
    handle = driver.made(made)
    for function in module.functions:
        if function.kind == "entry" and function.body is not None:
            made.kernels[function.name] = LoadedKernel(made, function)
            driver.made(made.kernels[function.name])
    return handle


def digest(code: bytes) -> bytes:
    """Names machine code."""
    return hashlib.sha256(code).digest()


def ptx_of(image: bytes, kept: KeptPtx | None = None) -> str:
    """The PTX of an image. Raises CallFailed. `kept`: what compilers have left of their machine code."""
    if not image.startswith((_ELF, fatbin.MAGIC)):
        return image.split(b"\0", 1)[0].decode(errors="replace")
    entries = fatbin.entries(image) if image.startswith(fatbin.MAGIC) else []
    found = [(entry.architecture, entry.data()) for entry in entries if entry.ptx]
    if not found:
        return _kept([entry.data() for entry in entries] or [image], kept or KeptPtx())
    newest = max(architecture for architecture, _ in found)
    texts = [data for architecture, data in found if architecture == newest]
    if len(texts) > 1:
        raise CallFailed(calls.NOT_SUPPORTED, "the fat binary holds several modules of PTX that are to be linked")
    return texts[0].decode(errors="replace")


def _kept(code: list[bytes], kept: KeptPtx) -> str:
    """The PTX that was kept of machine code. Raises CallFailed."""
    known = next((kept.texts[each] for each in map(digest, code) if each in kept.texts), None)
    if known is not None:
        return known.rstrip("\0")
    for text in (file.read_text() for folder in kept.folders for file in folder.glob("*.ptx")):
        names = [name.encode() for name in _ENTRY.findall(text)]
        if names and any(all(name in each for name in names) for each in code):
            return text.rstrip("\0")
    raise CallFailed(calls.NO_BINARY, _NO_PTX)


def _linked_at(driver: StandInDriver, address: int) -> Iterator[bytes]:
    """The fat binaries from which the module of a wrapper was linked."""
    if driver.memory.read(address, 4) != _WRAPPER:
        return
    version, table = struct.unpack("<4xI8xQ", driver.memory.read(address, 24))
    while version == _LINKED and table and (place := _word_at(driver, table)):
        yield image_at(driver, place)
        table += 8


def _word_at(driver: StandInDriver, address: int) -> int:
    return int.from_bytes(driver.memory.read(address, 8), "little")


def _joined(driver: StandInDriver, images: list[bytes]) -> str:
    """The PTX of all images that have some for the device; NVIDIA's own have machine code. Raises CallFailed."""
    own = int("".join(filter(str.isdigit, driver.session.options.chip)))
    ours = [[each for each in fatbin.entries(image) if each.ptx and each.architecture <= own] for image in images]
    texts = [max(entries, key=lambda each: each.architecture).data().decode(errors="replace") for entries in ours if entries]
    if not texts:
        raise CallFailed(calls.NO_BINARY, _NO_PTX)
    return unite(texts)[0] if len(texts) > 1 else texts[0]


def image_at(driver: StandInDriver, address: int) -> bytes:
    """The image of a module at an address of the program: a fat binary, its wrapper, machine code, or text."""
    head = driver.memory.read(address, 4)
    if head == _WRAPPER:
        address = _word_at(driver, address + 8)
        head = driver.memory.read(address, 4)
    if head == fatbin.MAGIC:
        _, _, begin, size = _HEAD.unpack(driver.memory.read(address, _HEAD.size))
        return driver.memory.read(address, begin + size)
    return driver.memory.read(address, _elf_size(driver.memory.read(address, 64))) if head == _ELF else driver.memory.string(address)


def _elf_size(head: bytes) -> int:
    """The bytes of a 64-bit ELF file whose tables stand at its end."""
    programs, sections = struct.unpack_from("<QQ", head, 32)
    program_size, program_count, section_size, section_count = struct.unpack_from("<4H", head, 54)
    return max(64, int(programs + program_size * program_count), int(sections + section_size * section_count))


@contextlib.contextmanager
def _loading(driver: StandInDriver) -> Iterator[None]:
    """A program may go on without a module that is not loaded: what it would have launched is not checked."""
    try:
        yield
    except (CallFailed, ConsanError) as error:
        driver.session.watch.reasons[f"a module was not loaded: {getattr(error, 'why', '') or error}"] = None
        raise


@serves(">Q Q", "cuModuleLoadData", "cuModuleLoadFatBinary", "cuModuleLoadDataEx", "cuLibraryLoadData")
def load_data(driver: StandInDriver, image: int) -> int:
    """Load the module at an address of the program: its handle. Raises CallFailed."""
    with _loading(driver):
        linked = list(_linked_at(driver, image))
        return _load(driver, _joined(driver, linked) if linked else ptx_of(image_at(driver, image), driver.kept_ptx), "<ptx>")


@serves(">Q s", "cuModuleLoad", "cuLibraryLoadFromFile")
def _load_file(driver: StandInDriver, name: str) -> int:
    try:
        image = Path(name).read_bytes()
    except OSError as error:
        raise CallFailed(301, f"{name}: {error.strerror}") from None
    with _loading(driver):
        return _load(driver, ptx_of(image), name)


accepted("Q", "cuModuleUnload", "cuLibraryUnload")  # a kernel that is no longer used costs nothing, and its report needs the text


def entry(driver: StandInDriver, module: int, name: str) -> int:
    """The handle of a kernel of a module. Raises CallFailed."""
    found = driver.of(module, DriverModule).kernels.get(name)
    if found is None:
        raise CallFailed(calls.NOT_FOUND)
    return int(found.handle)


serves(">Q Q s", "cuModuleGetFunction", "cuLibraryGetKernel")(entry)


@serves(">Q >Q Q s", "cuModuleGetGlobal_v2", "cuLibraryGetGlobal")
def variable(driver: StandInDriver, module: int, name: str) -> tuple[int, int]:
    """Address and bytes of a variable of a module. Raises CallFailed."""
    prepared = driver.of(module, DriverModule).prepared
    try:
        address, size = driver.session.backend.symbol(prepared.loaded, name)
    except (KeyError, ValueError):
        raise CallFailed(calls.NOT_FOUND) from None
    return int(address), int(size)


@serves(">I Q", "cuLibraryGetKernelCount", "cuModuleGetFunctionCount")
def _count(driver: StandInDriver, module: int) -> int:
    return len(driver.of(module, DriverModule).kernels)


@serves("Q I Q", "cuLibraryEnumerateKernels", "cuModuleEnumerateFunctions")
def _kernels(driver: StandInDriver, places: int, room: int, module: int) -> None:
    handles = [each.handle for each in driver.of(module, DriverModule).kernels.values()][:room]
    driver.memory.write(places, struct.pack(f"<{len(handles)}Q", *handles))


def _same(driver: StandInDriver, handle: int) -> int:
    """A library and its module, or a kernel and its function, have one handle."""
    driver.of(handle, (DriverModule, LoadedKernel))  # type: ignore[arg-type]
    return handle


serves(">Q Q", "cuLibraryGetModule", "cuKernelGetFunction")(_same)


@serves(">Q Q", "cuFuncGetModule", "cuKernelGetLibrary")
def _module(driver: StandInDriver, kernel: int) -> int:
    return int(driver.of(kernel, LoadedKernel).module.handle)


@serves("Q Q Q", "cuFuncGetName")  # the library keeps what is written for the program
def _name(driver: StandInDriver, place: int, room: int, kernel: int) -> None:
    driver.memory.write(place, driver.of(kernel, LoadedKernel).function.name.encode()[: room - 1] + b"\0")


@serves(">i Q", "cuFuncIsLoaded")
def _is_loaded(driver: StandInDriver, kernel: int) -> int:
    return 1


accepted("Q", "cuFuncLoad", "cuFuncSetCacheConfig", "cuFuncSetSharedMemConfig", "cuKernelSetCacheConfig")


@serves(">i", "cuModuleGetLoadingMode")
def _mode(driver: StandInDriver) -> int:
    return 1  # eager


def _parameter(driver: StandInDriver, kernel: int, index: int) -> tuple[int, int]:
    at = 0
    for number, each in enumerate(driver.of(kernel, LoadedKernel).function.params):
        at = -(-at // each.alignment) * each.alignment
        if number == index:
            return at, each.nbytes
        at += each.nbytes
    raise CallFailed(calls.INVALID_VALUE)


serves("Q Q >Q >Q", "cuFuncGetParamInfo", "cuKernelGetParamInfo")(_parameter)


@serves("Q >Q", "cuFuncGetParamCount", "cuKernelGetParamCount")
def _parameters(driver: StandInDriver, kernel: int) -> int:
    return len(driver.of(kernel, LoadedKernel).function.params)


# -- attributes ----------------------------------------------------------------------------------------------------------------------------


@serves(">i i Q", "cuFuncGetAttribute", "cuKernelGetAttribute")
def attribute(driver: StandInDriver, attribute: int, kernel: int) -> int:
    """An attribute of a kernel, by its number in CUfunction_attribute. Raises CallFailed."""
    found = driver.of(kernel, LoadedKernel)
    if attribute == _SHARED:
        return int(driver.session.backend.resources(found.module.prepared.loaded, found.function.name).static_shared)
    return int(found.attributes.get(attribute, 32 if attribute == 4 else 0))  # 4: registers of a thread


@serves("Q i i", "cuFuncSetAttribute")
def set_attribute(driver: StandInDriver, kernel: int, attribute: int, value: int) -> None:
    """Set an attribute of a kernel. Raises CallFailed."""
    if attribute == _DYNAMIC and not 0 <= value <= _OPTIN:
        raise CallFailed(calls.INVALID_VALUE)
    driver.of(kernel, LoadedKernel).attributes[attribute] = value


@serves("i i Q", "cuKernelSetAttribute")
def _set_kernel(driver: StandInDriver, attribute: int, value: int, kernel: int) -> None:
    set_attribute(driver, kernel, attribute, value)


@serves(">i Q i Q", "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")
def _occupancy(driver: StandInDriver, kernel: int, block: int, shared: int) -> int:
    return max(1, min(2048 // max(block, 1), _OPTIN // max(shared, 1)))


@serves(">Q Q i i", "cuOccupancyAvailableDynamicSMemPerBlock")
def _room(driver: StandInDriver, kernel: int, blocks: int, threads: int) -> int:
    return int(_OPTIN // max(blocks, 1) - attribute(driver, _SHARED, kernel))


@serves(">i >i Q Q Q i", "cuOccupancyMaxPotentialBlockSize", "cuOccupancyMaxPotentialBlockSizeWithFlags")
def _block(driver: StandInDriver, kernel: int, sizes: int, shared: int, limit: int) -> tuple[int, int]:
    return int(driver.session.backend.sm_count), min(limit or 256, 256)


@serves(">i Q Q", "cuOccupancyMaxActiveClusters")
def _clusters(driver: StandInDriver, kernel: int, config: int) -> int:
    return int(driver.session.backend.sm_count)


@serves(">i Q Q", "cuOccupancyMaxPotentialClusterSize")
def _cluster(driver: StandInDriver, kernel: int, config: int) -> int:
    return 8
