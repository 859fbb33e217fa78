"""The import hook: fires after the import, once, and leaves no trace."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from consan.adapters.importhook import ImportHook


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "hooked_pkg"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("value = 1\n")
    (tmp_path / name / "inner.py").write_text("value = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield name
    for loaded in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[loaded]


def test_fires_after_execution_and_restores_the_loader(package: str) -> None:
    hook, seen = ImportHook(), []
    hook.when_imported(package, lambda module: seen.append(module.value))
    assert seen == []
    module = importlib.import_module(package)
    assert seen == [1]
    assert type(module.__loader__).__name__ == type(module.__spec__.loader).__name__ == "SourceFileLoader"
    assert hook not in sys.meta_path


def test_submodule(package: str) -> None:
    hook, seen = ImportHook(), []
    hook.when_imported(f"{package}.inner", lambda module: seen.append(module.__name__))
    importlib.import_module(package)
    assert seen == []
    importlib.import_module(f"{package}.inner")
    assert seen == [f"{package}.inner"]


def test_a_module_that_calls_itself_otherwise(package: str, tmp_path: Path) -> None:
    (tmp_path / package / "__init__.py").write_text("__name__ = 'hooked_pkg.inner'\nvalue = 3\n")
    hook, seen = ImportHook(), []
    hook.when_imported(package, lambda module: seen.append(module.value))
    importlib.import_module(package)
    assert seen == [3]
    assert hook not in sys.meta_path


def test_fires_at_once_for_a_loaded_module() -> None:
    seen: list[str] = []
    hook = ImportHook()
    hook.when_imported("json", lambda module: seen.append(module.__name__))
    assert seen == ["json"]
    assert hook not in sys.meta_path


def test_cancel(package: str) -> None:
    hook, seen = ImportHook(), []
    cancel = hook.when_imported(package, lambda module: seen.append("cancelled"))
    hook.when_imported(package, lambda module: seen.append("kept"))
    cancel()
    cancel()
    importlib.import_module(package)
    assert seen == ["kept"]


def test_last_cancel_leaves_meta_path(package: str) -> None:
    hook = ImportHook()
    cancel = hook.when_imported(package, lambda module: None)
    assert hook in sys.meta_path
    cancel()
    assert hook not in sys.meta_path


def test_missing_module_stays_missing() -> None:
    hook, seen = ImportHook(), []
    cancel = hook.when_imported("no_such_module_at_all", seen.append)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_at_all")
    cancel()
    assert seen == []


def test_error_in_a_callback_reaches_the_import(package: str) -> None:
    hook = ImportHook()

    def fail(module: object) -> None:
        raise RuntimeError("version 1 is not supported")

    hook.when_imported(package, fail)
    with pytest.raises(RuntimeError, match="version 1"):
        importlib.import_module(package)
    assert package not in sys.modules
