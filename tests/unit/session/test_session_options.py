"""The options of a session as one record."""

from __future__ import annotations

from typing import Any

import pytest

from consan._errors import UsageError
from consan.options import RUN, SESSION, read_kernel_filter
from consan.session.planning.options import NAMES, LaunchFilter, SessionOptions


def test_the_record_has_the_options_of_the_command_line_with_their_defaults() -> None:
    rows = {option.name: option.default for option in (*SESSION, *RUN)}
    assert SessionOptions.of(rows) == SessionOptions()
    assert set(NAMES) == set(rows)


def test_it_reaches_another_process_unchanged() -> None:
    options = SessionOptions(seed=7, timeout=1.5, filter=LaunchFilter(read_kernel_filter("regex=^k"), 2, 3), keep_histories=True)
    assert SessionOptions.restored(options.stored()) == options
    assert SessionOptions.restored(SessionOptions().stored()) == SessionOptions()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"device": "tpu"}, "device='tpu': expected 'auto' or 'gpu' or 'cpu'"),
        ({"seed": None}, "seed=None: expected a whole number"),
        ({"sample": 0}, "sample=0: expected a number of CTAs above zero"),
        ({"timeout": 0}, "timeout=0: expected a time in seconds above zero"),
        ({"shadow_memory": -1}, "shadow_memory=-1: expected a number of bytes above zero"),
        ({"sample": 2, "exhaustive": True}, "--sample and --exhaustive exclude each other"),
        ({"engine": "inline", "global_memory": "on"}, "--global on: --engine inline does not look for races in global memory"),
        ({"policies": "isa"}, "there is no option 'policies'; did you mean policy?"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        SessionOptions.of(given)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("given", "wanted", "excluded"),
    [({}, True, False), ({"sample": 1}, True, False), ({"global_memory": "off"}, False, True), ({"engine": "inline"}, True, True)],
)
def test_global_memory_is_wanted_unless_it_is_off(given: dict[str, Any], wanted: bool, excluded: bool) -> None:
    options = SessionOptions.of(given)
    assert (options.global_wanted, options.global_excluded) == (wanted, excluded)
