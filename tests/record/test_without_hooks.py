"""Called hooks are packages of their own: without their files a copy of consan records and checks, and names what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import consan

ROOT = Path(consan.__file__).parent.parent
# Behind the door, consan/session/modules/hooks.py.
HOOKS = (
    *("instrument/runtime", "instrument/passes", "instrument/called_hooks.py"),
    *("consan/session/modules/shadow.py", "consan/session/modules/runtime.py"),
)
TESTS = (
    *("tests/record/test_leaving.py", "tests/record/test_recorded_functions.py"),
    *("tests/record/test_recorded_delays.py", "tests/record/test_framework_launches.py", "tests/record/test_graph_nodes.py"),
)
NEED_HOOKS = "engines"  # of these: a comparison
# An editable install finds the files of the checkout, too.
ALONE = "import sys\nsys.meta_path[:] = [each for each in sys.meta_path if 'Editable' not in getattr(each, '__name__', '')]\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, laid out as it is installed, without the hooks; and the tests."""
    folder = tmp_path_factory.mktemp("consan") / "copy"
    for source, place in (("consan", "consan"), ("instrument", "consan/instrument"), ("reports", "consan/reports"), ("tests", "tests")):
        shutil.copytree(ROOT / source, folder / place, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "sitecustomize.py").write_text(ALONE)
    for name in HOOKS:
        path = folder / name.replace("instrument", "consan/instrument", 1)
        assert path.exists(), name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return folder


def run(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python in the copy, whose package comes before the one that is installed."""
    given = {**os.environ, "PYTHONPATH": str(copy)}
    return subprocess.run([sys.executable, *words], cwd=copy, env=given, capture_output=True, text=True, check=False, timeout=900)


def test_the_copy_is_what_runs(copy: Path) -> None:
    done = run(copy, "-c", "import consan, consan.instrument; print(consan.__file__, consan.instrument.__file__)")
    assert done.stdout.split() == [str(copy / "consan" / "__init__.py"), str(copy / "consan" / "instrument" / "__init__.py")], done.stderr


@pytest.mark.parametrize("tests", [TESTS[1:3], pytest.param(TESTS, marks=pytest.mark.slow)], ids=["some", "all"])
def test_kernels_are_recorded_without_the_room(copy: Path, tests: tuple[str, ...]) -> None:
    done = run(copy, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests, "-k", f"not ({NEED_HOOKS})")
    assert done.returncode == 0, done.stdout[-3000:]


def test_hooks_are_what_is_missing(copy: Path) -> None:
    text = (
        "import consan; consan.launch(consan.Kernel('extern \"C\" __global__ void k() {}', 'k'), 1, 32, [], device='cpu', engine='inline')"
    )
    done = run(copy, "-c", text)
    assert "called_hooks" in done.stderr
