"""Names of the references of Pallas kernels."""

from __future__ import annotations

import pytest

from consan.adapters.driven.jax import reference_names


@pytest.mark.parametrize(
    ("given", "names"),
    [(("x_ref", "o_ref"), ("x_ref", "o_ref")), (("refs[0]", "refs[1]"), ()), (("x_ref", "rest[0]"), ()), ((), ())],
)
def test_only_names_of_the_program_are_said(given: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert reference_names(given) == names
