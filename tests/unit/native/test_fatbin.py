"""Fat binaries. Those in `data` are nvcc 13.0's, of tests/native/sums.cu.

nvcc --compress-mode=size (zstd), speed (lz4), none (plain) -gencode arch=compute_90a,code=[compute_90a,sm_90a]
-gencode arch=compute_80,code=compute_80 -fatbin; `code`: with code=sm_90a in place of the list. `part_sums`, `part_values`: of the files of
these names in tests/native, with -rdc=true -gencode arch=compute_90a,code=compute_90a -fatbin.
"""

from __future__ import annotations

import ctypes
import random
import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from consan._errors import ConsanError, EnvironmentFailure, UsageError
from consan.toolchain.fatbin import MAGIC, choose_ptx, embedded, entries

DATA = Path(__file__).parent / "data"


def fatbin(name: str) -> bytes:
    return (DATA / f"{name}.fatbin").read_bytes()


@pytest.mark.parametrize("name", ["plain", "lz4", "zstd"])
def test_entries(name: str) -> None:
    found = entries(fatbin(name))
    assert [(entry.ptx, entry.architecture) for entry in found] == [(True, 90), (False, 90), (True, 80)]
    assert [entry.data() for entry in found] == [entry.data() for entry in entries(fatbin("plain"))]
    assert found[1].data().startswith(b"\x7fELF")
    assert found[0].data().rstrip().endswith(b"}")


@pytest.mark.parametrize(
    ("name", "architecture", "target"),
    [
        ("zstd", "sm_90a", ".target sm_90a"),
        ("zstd", "sm_90", ".target sm_90a"),
        ("zstd", "sm_89", ".target sm_80"),
        ("zstd", "sm_100a", ".target sm_80"),  # sm_90a runs on nothing else
        ("zstd", "sm_75", None),
        ("code", "sm_90a", None),  # the GPU runs the machine code for sm_90a, not the PTX for sm_80
        ("code", "sm_100a", ".target sm_80"),
    ],
)
def test_the_ptx_that_a_gpu_would_run(name: str, architecture: str, target: str | None) -> None:
    found = choose_ptx(fatbin(name), architecture)
    assert (found is None) == (target is None)
    if found is not None and target is not None:
        (text,) = found.texts
        assert target in text.splitlines()
        assert text.count(".visible .entry sums(") == 1


def test_a_file_compiled_for_two_targets_of_one_number_is_one_module() -> None:
    """As by -G -arch=sm_90a: its kernels would have other names if both were linked."""
    whole = fatbin("plain")
    head, size = struct.unpack_from("<IQ", whole, 20)
    entry = whole[16 : 16 + head + size]
    general = entry.replace(b".target sm_90a", b".target sm_90 ")
    for parts in ([entry, general], [general, entry]):
        found = choose_ptx(MAGIC + struct.pack("<HHQ", 1, 16, 2 * len(entry)) + b"".join(parts), "sm_90a")
        assert found is not None
        assert [".target sm_90a" in text for text in found.texts] == [True]


def test_fat_binaries_that_follow_each_other() -> None:
    assert len(entries(fatbin("plain") + fatbin("zstd"))) == 6
    assert len(entries(fatbin("code") + bytes(16))) == 2
    empty = fatbin("plain")[:8] + bytes(8)
    assert entries(empty) == []
    assert choose_ptx(empty, "sm_90a") is None
    several = choose_ptx(empty + fatbin("plain") + fatbin("zstd"), "sm_90a")
    assert several is not None
    assert (len(several.texts), several.gaps) == (2, True)


def test_fat_binaries_within_a_file() -> None:
    """An object file: they lie anywhere, and what only looks like the beginning of one is passed over."""
    parts = [fatbin("part_sums"), fatbin("part_values")]
    data = b"\x7fELF" + parts[0] + b"odd" + MAGIC + b"\1\0" + parts[1] + MAGIC
    assert list(embedded(data)) == parts


def test_what_is_no_fat_binary() -> None:
    for data in (b"", b"PTX", fatbin("plain")[:40], fatbin("plain")[:-1]):
        with pytest.raises(UsageError):
            entries(data)


@pytest.mark.parametrize(("name", "package", "title"), [("zstd", "zstandard", "Zstandard"), ("lz4", "lz4.block", "LZ4")])
def test_without_its_package_the_systems_library_decompresses(name: str, package: str, title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    try:
        assert choose_ptx(fatbin(name), "sm_90a") == choose_ptx(fatbin("plain"), "sm_90a")
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    first, *_ = entries(fatbin(name))
    with pytest.raises(UsageError, match="damaged"):
        replace(first, stored=first.stored[: len(first.stored) // 2]).data()
    monkeypatch.setattr(ctypes, "CDLL", no_library)
    with pytest.raises(EnvironmentFailure, match=f"compressed with {title}, and there is no library for that: pip install"):
        first.data()


def no_library(name: str) -> None:
    raise OSError(name)


@pytest.mark.parametrize("name", ["plain", "lz4", "zstd"])
def test_damaged_data_raise_one_kind_of_error(name: str) -> None:
    """Bytes changed at random, and the end cut off: the data are a program's, which need not mean well."""
    whole, chance, refused = fatbin(name), random.Random(0), 0
    for _ in range(1500):
        data = bytearray(whole[: chance.choice([len(whole), chance.randrange(len(whole))])])
        for _ in range(chance.randrange(1, 4)):
            at = chance.choice([chance.randrange(100), chance.randrange(len(whole))])
            data[at : at + 1] = chance.randbytes(1)
        try:
            choose_ptx(bytes(data), "sm_90a")
        except ConsanError:
            refused += 1
    assert refused > 100
