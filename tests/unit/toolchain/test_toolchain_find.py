"""Finding libraries: wheels before toolkits, the newest version, one libcu++, and a clear line when there is nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from consan._errors import EnvironmentFailure
from consan.toolchain import find
from consan.toolchain.extras import install

install("cpu")  # the command is made of what this environment knows, not the made-up one


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with nothing on it but what a test creates under the returned folder."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setattr(find, "_SYSTEM_ROOTS", ())
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    find.forget()
    yield tmp_path
    monkeypatch.undo()
    find.forget()


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_newest_wheel_wins(machine: Path) -> None:
    nvidia = machine / "site" / "nvidia"
    touch(nvidia / "cuda_nvrtc" / "lib" / "libnvrtc.so.12")
    touch(nvidia / "cu9" / "lib" / "libnvrtc.so.9")
    expected = touch(nvidia / "cu13" / "lib" / "libnvrtc.so.13")
    assert find.locate(find.NVRTC) == str(expected)


def test_cuda_12_wheels_have_a_folder_each(machine: Path) -> None:
    expected = touch(machine / "site" / "nvidia" / "nvjitlink" / "lib" / "libnvJitLink.so.12")
    assert find.locate(find.NVJITLINK) == str(expected)


def test_highest_version_in_one_folder(machine: Path) -> None:
    folder = machine / "site" / "nvidia" / "cu13" / "lib"
    for name in ("libnvrtc.so", "libnvrtc.so.9.2", "libnvrtc.so.13.0"):
        touch(folder / name)
    assert find.locate(find.NVRTC) == str(folder / "libnvrtc.so.13.0")


def test_builtins_are_not_taken_for_nvrtc(machine: Path) -> None:
    touch(machine / "site" / "nvidia" / "cu13" / "lib" / "libnvrtc-builtins.so.13.0")
    assert find.locate(find.NVRTC) is None


def test_toolkit_from_the_environment(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = touch(machine / "toolkit" / "lib64" / "libnvrtc.so.13")
    monkeypatch.setenv("CUDA_HOME", str(machine / "toolkit"))
    find.forget()
    assert find.locate(find.NVRTC) == str(expected)


def test_one_libcudacxx_only(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel, toolkit = machine / "site" / "nvidia" / "cu13" / "include", machine / "toolkit" / "include"
    touch(wheel / "cuda_runtime.h")
    touch(wheel / "cccl" / "cuda" / "std" / "cstdint")
    touch(toolkit / "cccl" / "cuda" / "std" / "cstdint")
    touch(toolkit / "crt" / "mma.h")
    monkeypatch.setenv("CUDA_HOME", str(machine / "toolkit"))
    find.forget()
    assert find.include_dirs() == (wheel / "cccl", wheel, toolkit)


def test_missing_library_names_the_package(machine: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"NVRTC.*not found.*pip install 'nvidia-cuda-nvrtc"):
        find.load(find.NVRTC)


def test_broken_library_is_not_an_oserror(machine: Path) -> None:
    touch(machine / "site" / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13")
    with pytest.raises(EnvironmentFailure, match="cannot be loaded"):
        find.load(find.NVRTC)


def test_ptxas_on_path(machine: Path) -> None:
    program = touch(machine / "bin" / "ptxas")
    program.chmod(0o755)
    find.forget()
    assert find.ptxas() == str(program)


def test_describe_says_what_is_not_there(machine: Path) -> None:
    assert set(find.describe().values()) == {"not found"}


def test_what_nvrtc_looks_for_by_name_is_loaded_first(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = machine / "site" / "nvidia" / "cu13" / "lib"
    for name in ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc-builtins.alt.so.13.0"):
        touch(folder / name)
    opened: list[str] = []
    monkeypatch.setattr("ctypes.CDLL", opened.append)
    find.forget()
    find.load(find.NVRTC)
    assert [Path(each).name for each in opened] == ["libnvrtc-builtins.so.13.0", "libnvrtc.so.13"]
