"""A Python module in its process: `ModelNew` or `Model` is made and called with the module's own inputs, in smaller sizes, on the machine.
A module without them is run as a program.

torch's device "cuda" is the CPU (consan/adapters/triton/torch_device.py), and tensors are in the machine's memory. The results are
compared with those of `Model`, of the module itself or of a reference, with the same seed. Triton's kernels go to the machine, too
(triton_module.py).

Not handled: threads of the module that use the device, and backward passes.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import linecache
import re
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any, Final

from consan.adapters.base import Patches
from consan.adapters.triton import torch_device
from consan.adapters.triton.driver import VirtualDriver
from consan.audit import rows
from consan.audit.child.extensions import Extensions
from consan.audit.child.launcher import SIGNATURES, LaunchHooks
from consan.audit.child.triton_module import claim_gpu, on_the_machine
from consan.audit.host.sizes import smaller_constants
from consan.audit.python_text import builds_extensions, triton_kernels, uses_triton
from consan.session.session import Session

_SEED: Final = 42
_TOLERANCE: Final = 1e-2  # absolute and relative


def audit_python(work: Any, path: str, text: str, reference: str | None) -> None:
    """One module, to its end."""
    torch = _torch()
    if torch is None and not uses_triton(text):
        work.events.failed("", rows.CRASHED, "torch is not installed, and Python modules need it: pip install torch")
        return
    if work.audited.is_gpu and uses_triton(text):
        work.events.failed("", rows.CRASHED, "Triton's kernels are audited on the virtual machine alone; for a GPU: consan run")
        return
    if torch is not None and builds_extensions(text):
        _build_extensions(work, path, text, torch)
    work.events.send("kernels", names=triton_kernels(text))
    with on_the_machine(work) if uses_triton(text) else _torch_on_the_machine(work, torch):
        try:
            if torch is not None and _has_model(text, reference):
                _compare(work, torch, path, text, reference)
            else:
                _run(work, path, text)
        except BaseException as error:
            traceback.print_exc()
            work.events.failed("", rows.CRASHED, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


def _torch() -> Any:
    with contextlib.suppress(ImportError):
        return importlib.import_module("torch")
    return None


def _build_extensions(work: Any, path: str, text: str, torch: Any) -> None:
    launcher = work.launcher()
    extensions = Extensions(launcher, work, path, text, torch)
    _own_memory(extensions, launcher)
    extension: Any = importlib.import_module("torch.utils.cpp_extension")
    extension.load_inline, extension.load = extensions.load_inline, extensions.load


def _own_memory(extensions: Extensions, launcher: LaunchHooks) -> None:
    callbacks = [SIGNATURES[name](getattr(launcher, name)) for name in ("allocate", "release")]
    launcher.kept += callbacks
    extensions.own_memory(*(ctypes.cast(each, ctypes.c_void_p) for each in callbacks))


@contextlib.contextmanager
def _torch_on_the_machine(work: Any, torch: Any) -> Iterator[None]:
    """Inside the block torch's device "cuda" is the CPU."""
    session = Session(work.checked().options, on=work.audited.opened)
    patches = Patches()
    undo = torch_device.redirect(session, VirtualDriver(session), patches, torch)
    claim_gpu(patches, torch)
    try:
        yield
    finally:
        undo()
        patches.undo()


def _has_model(text: str, reference: str | None) -> bool:
    """Whether there is a model to call, and inputs to call it with."""
    return re.search(r"\bModel(?:New)?\b", text) is not None and ("get_inputs" in text or reference is not None)


def _run(work: Any, path: str, text: str) -> None:
    """Run the module as a program."""
    sys.argv = [path]
    try:
        _module("__main__", path, text)
    except SystemExit as ended:
        if ended.code:
            work.events.note(f"it ended with status {ended.code}")


# -- running ------------------------------------------------------------------------------------------------------------------


def _compare(work: Any, torch: Any, path: str, text: str, reference: str | None) -> None:
    module = _module("consan_audited", path, text)
    model = getattr(module, "ModelNew", None) or getattr(module, "Model", None)
    if model is None:
        work.events.note("it has no Model: what its import launches is all that ran")
        return
    shapes = module if hasattr(module, "get_inputs") else _module("consan_reference", path, reference or "")
    other = _module("consan_reference", path, reference) if reference is not None else shapes
    expected = getattr(other, "Model", None)
    compared = expected is not None and expected is not model and work.compares
    first = (expected, other if hasattr(other, "get_inputs") else shapes) if compared else (model, shapes)
    found = _shrunk_outputs(work, torch, first, (shapes, other), text)
    if compared:
        _judge(work, torch, _outputs(torch, model, shapes), found)


def _shrunk_outputs(work: Any, torch: Any, first: tuple[Any, Any], modules: tuple[Any, Any], text: str) -> list[Any]:
    """The outputs of the model that runs first, which is the reference if there is one, in smaller sizes.

    Where these do not fit together, because a module has computed others from them, only the batch is smaller.
    """
    if not work.shrinks:
        return _outputs(torch, *first)
    whole = [dict(vars(module)) for module in modules]
    for module in dict.fromkeys(modules):
        if _shrink(module, text, inner=True):
            work.events.send("smaller")
    try:
        return _outputs(torch, *first)
    except RuntimeError:
        if work.events.launches:
            raise
    for module, before in zip(modules, whole, strict=True):
        vars(module).update(before)
        _shrink(module, text, inner=False)
    work.events.note("inner sizes are those of the module: smaller ones do not fit together")
    return _outputs(torch, *first)


def _module(name: str, path: str, text: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__file__ = path
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path  # Triton reads the sources of its kernels
    sys.modules[name] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def _shrink(module: Any, text: str, *, inner: bool) -> bool:
    """Give the module's constants smaller values; without `inner` the batch alone. Whether there are any."""
    constants = {name: value for name, value in vars(module).items() if type(value) is int and value > 1}
    made = smaller_constants(constants, text, inner=inner)
    vars(module).update(made)
    return made != constants


def _outputs(torch: Any, model: Any, module: Any) -> list[Any]:
    """The tensors that a model gives for the module's inputs."""
    torch.manual_seed(_SEED)
    arguments = module.get_init_inputs() if hasattr(module, "get_init_inputs") else []
    named = arguments[1] if len(arguments) == 2 and isinstance(arguments[1], dict) and isinstance(arguments[0], list) else {}
    torch.manual_seed(_SEED)
    made = model(*(arguments[0] if named else arguments), **named)
    made = made.cuda() if hasattr(made, "cuda") else made
    torch.manual_seed(_SEED)
    inputs = [each.clone() if isinstance(each, torch.Tensor) else each for each in module.get_inputs()]
    with torch.no_grad():
        return list(_tensors(torch, made(*inputs)))


def _tensors(torch: Any, value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(torch, each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(torch, each)


def _judge(work: Any, torch: Any, found: list[Any], expected: list[Any]) -> None:
    """Tell the largest difference, and whether it is too large."""
    if [each.shape for each in found] != [each.shape for each in expected]:
        work.events.send(
            "error", value=None, why=f"shapes {[tuple(each.shape) for each in found]}, expected {[tuple(each.shape) for each in expected]}"
        )
        return
    worst, why = 0.0, ""
    for ours, theirs in zip(found, expected, strict=True):
        a, b = ours.detach().double(), theirs.detach().double()
        if b.numel():
            worst = max(worst, float((a - b).abs().nan_to_num(float("inf")).max() / b.abs().nan_to_num().max().clamp_min(1e-12)))
        if not torch.allclose(a, b, atol=_TOLERANCE, rtol=_TOLERANCE, equal_nan=True):
            why = f"the results differ from the reference by {worst:.3g} of its largest value"
    work.events.send("error", value=worst, why=why)
