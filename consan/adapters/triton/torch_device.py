"""torch's device "cuda" on the virtual machine: it means the CPU, so that scripts need no change.

A function mode of torch (`torch.overrides.TorchFunctionMode`) turns "cuda" into "cpu" wherever a torch function or a tensor
method gets a device, and makes `Tensor.cuda()` do nothing; it holds in the backward of a program's own functions, too. An operator that a
library registers for "cuda" is the CPU's, and `torch.compile` gives its function as it is. The `torch.cuda` functions that query the device
or wait answer for the virtual machine; streams are in distributed/torch_streams.py. `torch.cuda.is_available()`, `Tensor.is_cuda` and
`Tensor.data_ptr()` change only where a program cannot have a path without a GPU.

A mode belongs to its thread: with --ranks that of each rank gets it.

With --gpus each device has its streams, and tensors are on one (torch_operations.py); else several are one: where a program names two,
the report is incomplete.

Not handled: other threads than the one that began the session, `torch.Generator(device="cuda")`,
CUDA graphs, and memory statistics.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

from consan.adapters.base import Patches, SessionLike
from consan.adapters.triton.driver import VirtualDriver
from consan.adapters.triton.torch_operations import TorchOperations
from consan.ranks.crew import current

_NOTE = 'torch\'s device "cuda" is the CPU in this run: the virtual machine works on tensors in host memory'
_UNCOMPILED = "torch.compile does nothing in this run: kernels that it would make are not checked; those of Triton in its functions are"


def redirect(
    session: SessionLike, driver: VirtualDriver, patches: Patches, torch: ModuleType, address: Callable[[Any], int] | None = None
) -> Callable[[], None]:
    """Redirect the device. Calling the result removes the mode (`patches` hold the rest).

    `address`: the program has no path without a GPU, and this is the address of a tensor there.
    """
    cuda = importlib.import_module("torch.cuda")
    for name, value in {**_answers(driver), **({"is_available": lambda: True} if address else {})}.items():
        if hasattr(cuda, name):
            patches.set(cuda, name, value)
    mode = _mode(session, driver, torch, address)
    patches.set(torch.autograd, "_engine_run_backward", _inside(mode, torch.autograd._engine_run_backward))
    operator = importlib.import_module("torch._library.custom_ops").CustomOpDef
    patches.set(operator, "register_kernel", _for_the_cpu(operator.register_kernel))
    patches.set(torch, "compile", _uncompiled(session))
    if (crew := current()) is not None:  # each rank is a thread, which ends with the mode
        crew.in_each(mode.__enter__)
        return lambda: None
    mode.__enter__()
    return functools.partial(mode.__exit__, None, None, None)


def _inside(mode: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """torch takes a mode away while it handles a function, and `backward` is one that calls the program's own functions."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return original(*args, **kwargs)

    return run


def _for_the_cpu(original: Callable[..., Any]) -> Callable[..., Any]:
    """`CustomOpDef.register_kernel`: what is meant for "cuda" is registered for the CPU."""

    def register(operator: Any, device_types: Any, *function: Any) -> Any:
        named = device_types == "cuda" or (isinstance(device_types, (list, tuple)) and "cuda" in device_types)
        return original(operator, "cpu" if named else device_types, *function)

    return register


def _uncompiled(session: SessionLike) -> Callable[..., Any]:
    """`torch.compile` that gives what it gets: compiled for the CPU, a function would launch no kernels either."""

    def of(model: Any = None, **how: Any) -> Any:
        session.note(_UNCOMPILED)
        return (lambda function: function) if model is None else model

    return of


def _answers(driver: VirtualDriver) -> dict[str, Any]:
    properties = driver.utils.get_device_properties()
    major, minor = driver.get_device_capability()
    devices = driver.session.streams.places.devices
    described = SimpleNamespace(
        name="consan's virtual machine",
        major=major,
        minor=minor,
        multi_processor_count=properties["multiprocessor_count"],
        total_memory=int(driver.session.backend.memory_bytes),
        warp_size=32,
        shared_memory_per_block_optin=properties["max_shared_mem"],
        regs_per_multiprocessor=properties["max_num_regs"],
    )
    return {
        **driver.now.functions(),
        "current_device": lambda: driver.now.device_of(driver.now.get()),
        "set_device": lambda device: _set_device(driver, device),
        "device": lambda device: _on(driver, device),
        "get_device_capability": driver.get_device_capability,
        "get_device_properties": lambda device=None: described,
        "get_device_name": lambda device=None: described.name,
        "synchronize": lambda device=None: _synchronize(driver, device),
        "empty_cache": lambda: None,
        **({"device_count": lambda: devices} if devices > 1 else {}),
    }


@contextmanager
def _on(driver: VirtualDriver, device: Any) -> Iterator[None]:
    """A device is the current one within the block; None, or a number below 0: it stays the one that is."""
    _name_device(driver, device)
    places, named = driver.session.streams.places, device is not None and device != -1
    before = places.use(driver.now.place_of(device)) if named else places.here
    try:
        yield
    finally:
        if named:
            places.use(before)


def _set_device(driver: VirtualDriver, device: Any) -> None:
    _name_device(driver, device, sets=True)
    driver.session.streams.places.use(driver.now.place_of(device))


def _name_device(driver: VirtualDriver, device: Any, *, sets: bool = False) -> None:
    """The program has named a device: by its number, as "cuda:1", or as a device of torch. `sets`: it is the current one from now on."""
    crew, number = current(), device if isinstance(device, int) else str(device).partition(":")[2]
    if driver.session.streams.places.devices > 1 and crew is None and int(number or 0) < driver.session.streams.places.devices:
        return
    if number == "" or str(number).isdigit():
        driver.session.streams.names_device(None if number == "" else int(number), None if crew is None else crew.rank, sets=sets)


def _synchronize(driver: VirtualDriver, device: Any) -> None:
    """The host waits for a device: what a rank has begun, too."""
    crew = current()
    with _on(driver, device) if crew is None else nullcontext():
        (driver.session.streams if crew is None else crew).synchronize()


def _of_others(function: Any) -> bool:
    """Whether it is an operator of the program, or of another library than torch."""
    name = getattr(function, "_qualified_op_name", "") or getattr(getattr(function, "_schema", None), "name", "")
    return bool(name) and not name.startswith(("aten::", "prims::"))


def _mode(session: SessionLike, driver: VirtualDriver, torch: ModuleType, address: Callable[[Any], int] | None) -> Any:
    operations = TorchOperations(driver.now)
    is_on_device = torch.Tensor.is_cuda if address else None

    def is_cuda(value: Any) -> bool:
        return (isinstance(value, str) and value.split(":")[0] == "cuda") or (isinstance(value, torch.device) and value.type == "cuda")

    class OnTheCpu(torch.overrides.TorchFunctionMode):  # type: ignore[misc,name-defined,unused-ignore]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = kwargs or {}
            if is_on_device is not None and getattr(function, "__self__", None) is is_on_device:
                return True
            if address is not None and function is torch.Tensor.data_ptr:
                return address(args[0])
            devices = [*filter(is_cuda, (*args, *named.values()))] or (["cuda"] if function is torch.Tensor.cuda else [])
            for each in devices:
                session.note(_NOTE)
                _name_device(driver, each)
            asked = driver.now.place_of(devices[0]) if devices else None
            if function is torch.Tensor.record_stream:
                return None
            if function is torch.Tensor.cuda:
                result = args[0]
            else:
                given = ("cpu" if is_cuda(value) else value for value in args)
                result = function(*given, **{name: "cpu" if is_cuda(value) else value for name, value in named.items()})
            name = getattr(function, "__name__", "").partition(".")[0]  # of an overload
            return operations.done(name, args, named, result, asked=asked, others=_of_others(function))

    return OnTheCpu()
