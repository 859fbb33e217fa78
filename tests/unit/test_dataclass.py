"""consan.dataclass makes what the standard library makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from consan.dataclass import compile_now, dataclass

WAYS = (
    {},
    *({each: True} for each in ("frozen", "kw_only", "order", "slots")),
    {"eq": False},
    {"frozen": True, "eq": False},
    {"repr": False},
)


def classes(decorator: Callable[..., Any], **given: bool) -> tuple[type, type]:
    """A class of two fields and a default factory, and a class that inherits from it."""

    @decorator(**given)
    class Base:
        number: int
        text: str = field(default="x", repr=False)
        values: list[int] = field(default_factory=list, compare=False)
        count: ClassVar[int] = 3

    @decorator(**given)
    class Derived(Base):
        more: int = 7
        late: int = field(default=0, init=False)
        made: dict[str, int] = field(default_factory=dict, init=False, hash=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", {"a": self.more})

    return Base, Derived


def tried(call: Callable[[], object]) -> object:
    """The result, or the error and its text."""
    try:
        return call()
    except (TypeError, FrozenInstanceError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("given", WAYS, ids=str)
@pytest.mark.parametrize("which", [0, 1])
def test_as_the_standard_library_does(given: dict[str, bool], which: int) -> None:
    ours, theirs = classes(dataclass, **given)[which], classes(dataclasses.dataclass, **given)[which]

    def all_of(cls: Any) -> list[object]:
        def one(**more: Any) -> Any:
            return cls(**{"number": 1, **more})

        known = one(text="y", values=[4])
        return [
            *(
                tried(lambda given=given: cls(*given) == cls(*given))
                for given in ((), (1,), (1, "y"), (1, "y", [2]), (1, "y", [2], 5, 6, 7))
            ),
            tried(lambda: cls(unknown=1)),
            *(one() == one(**more) for more in ({}, {"number": 2}, {"text": "y"}, {"values": [1]})),
            tried(lambda: hash(one(text="y")) == hash(one(text="y", values=[3]))),
            cls.__hash__ is None,
            one() == 1,
            repr(known) if "__repr__" in cls.__dict__ else None,
            "__eq__" in cls.__dict__,
            [(each.name, getattr(known, each.name)) for each in dataclasses.fields(cls)],
            dataclasses.asdict(dataclasses.replace(known, number=9)),
            tried(lambda: setattr(known, "number", 5)),
            tried(lambda: delattr(known, "text")),
            copy.deepcopy(one(values=[1])).values,
            cls.__match_args__,
            one().values is one().values,
            cls.count,
        ]

    assert all_of(ours) == all_of(theirs)


@dataclass(frozen=True)
class _Own:
    """Has its own methods; a subclass that is no dataclass has attributes of its own."""

    number: int

    def __hash__(self) -> int:
        return 5

    def __repr__(self) -> str:
        return "own"


class _More(_Own):
    def __init__(self) -> None:
        super().__init__(3)
        self.other = 4


def test_own_methods_stay_and_instances_are_pickled() -> None:
    more = _More()
    assert (hash(_Own(1)), repr(_Own(1)), more.number, more.other) == (5, "own", 3, 4)
    assert pickle.loads(pickle.dumps(_Own(2))) == _Own(2)
    with pytest.raises(FrozenInstanceError):
        more.number = 1  # type: ignore[misc]


def test_an_init_is_compiled_at_the_first_instance_and_a_wrong_call_names_the_class() -> None:
    @dataclass
    class Late:
        number: int

    first = Late.__init__
    assert Late(1) == Late(1)
    assert Late.__init__ is not first
    with pytest.raises(TypeError, match=r"Late\.__init__\(\) missing 1 required positional argument: 'number'"):
        Late()  # type: ignore[call-arg]


def test_no_signature_is_made_for_a_class_without_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard library makes one for `__doc__`, which is slow."""
    monkeypatch.setattr(inspect, "signature", lambda *_: pytest.fail("a signature is made"))

    @dataclass
    class Silent:
        number: int

    assert Silent.__doc__ == "Silent"


def test_a_method_may_be_compiled_before_it_is_called() -> None:
    @dataclass
    class Early:
        number: int
        twice: int = 2

    late = Early.__init__
    compile_now(Early)
    assert Early.__init__ is not late
    compiled = Early.__init__
    compile_now(Early)
    assert Early.__init__ is compiled
    assert (Early(1).twice, Early(1, 3)) == (2, Early(number=1, twice=3))
