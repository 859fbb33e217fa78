"""Names that were probably meant."""

from __future__ import annotations

import pytest

from consan.suggest import identifiers, listed, nearest


@pytest.mark.parametrize(
    ("wanted", "names", "found"),
    [
        ("racey", ["clean", "racy"], "racy"),
        ("Scale", ["_Z5scalePfi", "_Z4gemmv"], "scale"),
        ("swizzle_gem", ["_ZN3mma12swizzle_gemmIfLi2EEEvPT_"], "swizzle_gemm"),
        ("matmul", ["racy"], ""),
        ("x", [], ""),
    ],
)
def test_nearest(wanted: str, names: list[str], found: str) -> None:
    assert nearest(wanted, names) == found


def test_identifiers_of_a_mangled_name() -> None:
    assert identifiers("_ZN3mma12swizzle_gemmIfLi2EEEvPT_") == ["mma", "swizzle_gemm"]
    assert identifiers("k") == ["k"]
    assert identifiers("_Z999k-") == []


def test_a_long_list_is_cut() -> None:
    assert listed(["a", "b", "a"]) == "a, b"
    assert listed(map(str, range(10)), 8) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
