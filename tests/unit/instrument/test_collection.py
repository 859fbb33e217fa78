"""The search for cycles is held back within all blocks, and goes on behind the last one only if it was on before."""

from __future__ import annotations

import gc

import pytest

from consan.instrument.collection import no_collection


def test_blocks_within_each_other() -> None:
    assert gc.isenabled()
    with no_collection():
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_block_that_fails_ends() -> None:
    @no_collection()
    def fails() -> None:
        assert not gc.isenabled()
        raise ValueError(0)

    with pytest.raises(ValueError, match="0"):
        fails()
    assert gc.isenabled()


def test_a_program_without_it_stays_without_it() -> None:
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
