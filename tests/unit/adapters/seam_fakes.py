"""A session that marks what it instruments and notes every call; packages written into a folder and imported from there."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from consan.session.planning.options import SessionOptions


def kernel_of(module: str, entry: str, shared: int, cluster: tuple[int, int, int]) -> int:
    """The handle of a kernel in another module."""
    return {"plain": 8, "hooks": 9}[module]


@dataclass(repr=False)  # what it notes is long, and would stand in front of what fails
class FakeSession:
    """Marks what it instruments and notes every call."""

    options: SessionOptions = field(default_factory=SessionOptions)
    hooks: str = "hooks:"
    source_dir: Path | None = None
    backend: Any = field(default_factory=lambda: SimpleNamespace(device_name="Fake GPU", arch="sm_90a", function=kernel_of))
    names: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    attached: list[Any] = field(default_factory=list)
    launches: list[Any] = field(default_factory=list)
    records: bool = False
    recorded: list[Any] = field(default_factory=list)  # launches
    frameworks: Any = field(
        default_factory=lambda: SimpleNamespace(repeated=lambda *_: None, by_others=SimpleNamespace(add=lambda *_: None))
    )
    other: str | None = None  # the module whose kernel is launched instead of a recorded one
    unoptimised: Any = field(default_factory=lambda: SimpleNamespace(texts={}))

    def instrument_for_framework(self, ptx: str, *, name: str, unseen: str = "") -> Any:
        self.names.append(name)
        self.texts.append(ptx)
        hooked = SimpleNamespace(ptx=self.hooks + ptx)
        recorded = "how to read the log" if self.records and not unseen else None
        known = {"plain": ptx, "name": name, "session": self, "framework": "cuda", "recorded": recorded, "unseen": unseen}
        known["gets_logs"] = recorded is not None
        return SimpleNamespace(code=SimpleNamespace(cubin=b"instrumented:" + ptx.encode()), instrumented=hooked, **known)

    @contextlib.contextmanager
    def framework_launch(self, prepared: Any, launch: Any) -> Iterator[Any]:
        self.recorded.append(launch)
        yield self.other

    def here(self) -> FakeSession:
        return self

    def plain(self, prepared: Any, module: Any) -> str:
        return "plain"

    def attach(self, prepared: Any, set_symbol: Any) -> None:
        self.attached.append(prepared)
        if prepared.recorded is not None:
            return
        set_symbol("__consan_ctl", b"8 bytes!")

    def launched(self, prepared: Any, entry: str, buffers: Any) -> None:
        self.launches.append((prepared.name, entry, buffers))

    def uninstrumented(self, name: str, launches: int = 1) -> None:
        self.listed += [name] * launches

    def note(self, text: str) -> None:
        self.notes.append(text)


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> Iterator[Path]:
    """Write modules (dotted names to text; a name that others extend is a package), import from there, and take it all back."""
    for name, text in files.items():
        inner = any(other.startswith(name + ".") for other in files)
        path = folder.joinpath(*name.split("."), "__init__.py") if inner else folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    roots = {name.partition(".")[0] for name in files}
    hidden = _forget(roots)
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    yield folder
    _forget(roots)
    sys.modules.update(hidden)


def _forget(roots: set[str]) -> dict[str, Any]:
    names = [name for name in sys.modules if name.partition(".")[0] in roots]
    return {name: sys.modules.pop(name) for name in names}
