"""What a release says of itself: one version, metadata that hold, and names that a type checker sees."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import consan

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ABOUT = PROJECT["project"]


def test_the_version_is_the_same_everywhere() -> None:
    released = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert ABOUT["version"] == consan.__version__ == released[0]
    assert len(released) == len(set(released))


def test_the_metadata_hold() -> None:
    oldest = re.fullmatch(r">=3\.(\d+)", ABOUT["requires-python"])
    named = [int(each) for each in re.findall(r"Python :: 3\.(\d+)", " ".join(ABOUT["classifiers"]))]
    assert oldest is not None
    assert named == list(range(int(oldest[1]), named[-1] + 1))
    assert "Apache" in (ROOT / "LICENSE").read_text()
    assert ABOUT["license"] == {"text": "Apache-2.0"}
    assert {"License :: OSI Approved :: Apache Software License", "Typing :: Typed"} <= set(ABOUT["classifiers"])
    assert (ROOT / ABOUT["readme"]).is_file()


def test_a_release_has_each_file_that_is_no_python() -> None:
    """A source distribution has what `package-data` names: a header that it lacks is missed by a compiler first."""
    setup = PROJECT["tool"]["setuptools"]
    homes = {package: ROOT / package.removeprefix("consan.").replace(".", "/") for package in setup["packages"]}
    folders = {name: home if home.is_dir() and name != "consan" else ROOT / name.replace(".", "/") for name, home in homes.items()}
    named = {path for name, patterns in setup["package-data"].items() for each in patterns for path in folders[name].glob(each)}
    listed = subprocess.run(["git", "ls-files", "consan", "instrument", "reports"], cwd=ROOT, capture_output=True, text=True, check=True)
    others = {ROOT / each for each in listed.stdout.splitlines() if Path(each).suffix not in (".py", ".md")}
    assert others - named == set()


def test_type_checkers_see_the_public_names() -> None:
    """At run time `__getattr__` gives them: a type checker knows no types of it."""
    assert (ROOT / "consan" / "py.typed").is_file()
    assert "py.typed" in PROJECT["tool"]["setuptools"]["package-data"]["consan"]
    tree = ast.parse((ROOT / "consan" / "__init__.py").read_text())
    typed = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {alias.name for node in typed.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(consan.__all__) == seen | {name for name in defined if not name.startswith("_")}
