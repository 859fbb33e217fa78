"""Launch files of audits: what they say, and what is refused."""

from __future__ import annotations

import pytest

from consan._errors import UsageError
from consan.audit.launch_file import DescribedLaunch, LaunchSize, read_launches

LAUNCH = "[[launch]]\ngrid = 4\nblock = [32, 2]\n"


def test_a_launch_has_its_shape_and_its_arguments() -> None:
    found = read_launches('arrays.a = "f32[64]=zeros"\n' + LAUNCH + 'kernel = "k<int>"\nshared = 64\narguments = ["a", "i32=4"]\n' + LAUNCH)
    first = DescribedLaunch("k<int>", LaunchSize((4, 1, 1), (32, 2, 1), 64), ("a", "i32=4"))
    assert found.launches == (first, DescribedLaunch(None, LaunchSize((4, 1, 1), (32, 2, 1)), ()))
    assert found.arrays == {"a": "f32[64]=zeros"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("grid = ", "not TOML"),
        ("", "expected [[launch]]"),
        (LAUNCH + "smem = 4", "launch 1: no key 'smem'"),
        (LAUNCH + "[launches]", "no key 'launches'"),
        ("[[launch]]\ngrid = 4", "launch 1: expected block = X or [X, Y, Z] with numbers above zero, got None"),
        ("[[launch]]\ngrid = 0\nblock = 1", "expected grid"),
        ("[[launch]]\ngrid = 1\nblock = 2048", "launch 1: block"),
        (LAUNCH + "shared = -1", "expected a number of bytes for shared"),
        (LAUNCH + "arguments = [4]", "a list of texts for arguments"),
        (LAUNCH + "cluster = 3", "launch 1: grid: 4"),
        ("arrays.a = 4\n" + LAUNCH, "[arrays]: expected"),
    ],
)
def test_what_is_no_launch_file_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_launches(text)
    assert why in str(refused.value)
