"""Programs in Python whose framework launches by itself: on a GPU they run with the interposer."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from consan.native import run
from consan.native.python.scripts import find_framework_program, framework_of, framework_of_tests

SCRIPTS = [
    ("import warp as wp", "Warp"),
    ("from cutlass import cute", "CuTe DSL"),
    ("def f():\n    from flash_attn import cute", "CuTe DSL"),
    ("import tilelang.language as T", "tilelang"),
    ("from numba_cuda_mlir import cuda", "numba-cuda-mlir"),
    ("from jax.experimental import pallas", "JAX"),
    ("import sys\nif len(sys.argv) > 1: import jax", "JAX"),
    ("try: from tilelang import T\nexcept ImportError: pass", "tilelang"),
    ("import flash_attn", ""),
    ("import torch  # not warp", ""),
    ("from .warp import x", ""),
    ("import jaxtyping", ""),
    ("import warp as", ""),
]


def arguments(script: Path, **others: object) -> argparse.Namespace:
    return argparse.Namespace(**{"program": [str(script), "racy"], "module": None, "code": None, "device": "auto", **others})


@pytest.mark.parametrize(("text", "framework"), SCRIPTS)
def test_the_framework_of_a_script(text: str, framework: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(text + "\n")
    assert framework_of(script) == framework


def test_a_script_runs_with_the_interposer_where_there_is_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.py"
    script.write_text("import warp\n")
    monkeypatch.setattr(run, "has_gpu", lambda: True)
    found = find_framework_program(arguments(script))
    assert found is not None
    assert (found.file, found.words, found.label) == (sys.executable, (sys.executable, str(script), "racy"), str(script))
    assert "Warp" in found.note
    assert find_framework_program(arguments(script, device="cpu")) is None
    monkeypatch.setattr(run, "has_gpu", lambda: False)
    assert find_framework_program(arguments(script)) is None


# Modules of a program's own, and the framework of `main.py`.
OWN = [
    ({"main": "import kernels", "kernels": "import warp"}, "Warp"),
    ({"main": "from package.sub import kernels", "package/__init__": "", "package/sub/kernels": "import tilelang"}, "tilelang"),
    ({"main": "import package", "package/__init__": "from .kernels import (\n    a,\n)", "package/kernels": "import quack"}, "CuTe DSL"),
    ({"main": "import package.a", "package/__init__": "", "package/a": "from . import b, c", "package/c": "import jax"}, "JAX"),
    ({"main": "import a", "a": "import b", "b": "import a"}, ""),
    ({"main": "from package import a", "package/__init__": "", "package/a": "", "package/b": "import warp"}, ""),
]


def write(folder: Path, modules: dict[str, str]) -> None:
    for name, text in modules.items():
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")


@pytest.mark.parametrize(("modules", "framework"), OWN)
def test_modules_of_the_program_are_read(modules: dict[str, str], framework: str, tmp_path: Path) -> None:
    write(tmp_path, modules)
    assert framework_of(tmp_path / "main.py") == framework


WAYS = [
    ({"module": ["package.run", "racy"]}, ["-m", "package.run", "racy"], "package.run"),
    ({"module": ["package"]}, ["-m", "package"], "package"),
    ({"code": ["import sys; import warp", "1"]}, ["-c", "import sys; import warp", "1"], "c"),
    ({"module": ["pytest", "-q", "tests/test_it.py::test[1]"]}, ["-m", "pytest", "-q", "tests/test_it.py::test[1]"], "pytest"),
    ({"module": ["pytest", "tests"]}, ["-m", "pytest", "tests"], "pytest"),
    ({"module": ["pytest"]}, ["-m", "pytest"], "pytest"),
    ({"module": ["pytest", "--pyargs", "package.run"]}, ["-m", "pytest", "--pyargs", "package.run"], "pytest"),
    ({"module": ["cProfile", "script.py"]}, ["-m", "cProfile", "script.py"], "cProfile"),
    ({"module": ["pytest", "other"]}, None, ""),
    ({"module": ["package.other"]}, None, ""),
    ({"module": ["no.such"]}, None, ""),
    ({"code": ["import os"]}, None, ""),
]


@pytest.mark.parametrize(("way", "words", "label"), WAYS)
def test_modules_code_and_tests(
    way: dict[str, list[str]], words: list[str] | None, label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uses = {"tests/test_it": "import warp", "package/run": "import warp", "package/__main__": "import package.run", "script": "import warp"}
    write(tmp_path, {**uses, "package/__init__": "", "package/other": "", "other/test_other": ""})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "has_gpu", lambda: True)
    found = find_framework_program(arguments(tmp_path, **{"program": [], **way}))
    assert (None if found is None else [*found.words[1:]]) == words
    assert found is None or (found.label, found.words[0]) == (label, sys.executable)


def test_tests_that_plugin_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a/test_a": "import warp", "b/test_b": "import os", ".hidden/c": "import jax"})
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    write(tmp_path / "env", {"x": "import tilelang"})
    assert [framework_of_tests([str(tmp_path / name)]) for name in ("a", "b", ".")] == ["Warp", "", "Warp"]
    monkeypatch.chdir(tmp_path / "a")
    assert framework_of_tests([]) == "Warp"


# Installed packages, what each requires, and the framework of a script that imports `simulation`.
INSTALLED = [
    ({"simulation": "warp-lang>=1.10", "warp_lang": ""}, "Warp"),
    ({"simulation": "middle", "middle": "Warp_Lang ; python_version > '3'", "warp_lang": ""}, "Warp"),
    ({"simulation": "nvidia-cutlass-dsl[cu13]==4.8.1", "nvidia_cutlass_dsl": ""}, "CuTe DSL"),
    ({"simulation": "jax; extra == 'examples'", "jax": ""}, ""),
    ({"simulation": "numpy", "jax": ""}, ""),
    ({"other": "jax", "jax": ""}, ""),
    ({"simulation": "jax"}, ""),
]


@pytest.mark.parametrize(("packages", "framework"), INSTALLED)
def test_installed_packages_that_require_a_framework(
    packages: dict[str, str], framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, site = tmp_path / "own" / "script.py", tmp_path / "site"
    for name, needs in packages.items():
        distribution = site / f"{name}-1.0.dist-info"
        required = f"Requires-Dist: {needs}\n" if needs else ""
        write(site, {f"{name}/__init__": ""})
        distribution.mkdir()
        (distribution / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\n{required}\nRequires-Dist: warp-lang is only described\n"
        )
        (distribution / "RECORD").write_text(f"{name}/__init__.py,,\n")
    write(script.parent, {"script": "import numpy\nfrom simulation import run"})
    monkeypatch.setattr(sys, "path", [str(site)])
    assert framework_of(script) == framework
