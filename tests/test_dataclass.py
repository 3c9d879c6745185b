"""Our `dataclass` makes what the standard one makes. Each class here is made twice, once by each of them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from inspect import signature
from typing import Any, Generic, TypeVar

import pytest

from signoff.dataclass import dataclass
from tests.rigs.doc_pages import ROOT

T = TypeVar("T")
Maker = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list[str])


def bodies(make: Maker) -> dict[str, Any]:
    """Return a class of each kind that Signoff has, made by `make`."""

    @make(frozen=True, slots=True)
    class Plain:
        first: int
        second: str = "two"
        third: list[int] = field(default_factory=list[int])

    @make(frozen=True)
    class WithoutSlots:
        first: int = 1

    @make(frozen=True, slots=True)
    class WithoutFields:
        """Has a docstring."""

    @make(frozen=True)
    class Hiding:
        secret: str = field(repr=False)
        kept: dict[str, int] = field(default_factory=dict[str, int], init=False, compare=False)

    @make(frozen=True, slots=True, eq=False)
    class ByIdentity:
        first: int = 1

    @make(frozen=True, slots=True)
    class Checking:
        first: int = 1

        def __post_init__(self) -> None:
            if self.first < 0:
                raise ValueError("too small")
            object.__setattr__(self, "first", self.first + 1)

    @make(frozen=True, slots=True)
    class Spoken:
        first: int = 1

        def __repr__(self) -> str:
            return "spoken"

    @make(frozen=True, slots=True)
    class Of(Generic[T]):
        first: T

    @make(frozen=True, slots=True)
    class Longer(Plain):
        fourth: float = 4.0

    @make
    class Open:
        first: int
        second: list[int] = field(default_factory=list[int])

    @make
    class Wider(Open):
        named: int = field(default=0, kw_only=True)
        third: int = 3

    @make(eq=False)
    class ComparedAsItsBase(Open):
        ignored: object = field(default_factory=object, repr=False)

    @make(slots=True)
    class OpenWithSlots:
        first: int = 1

    @make(eq=False)
    class OpenByIdentity:
        first: int = 1

    @make
    class Prepared:
        first: int = 1
        later: int = field(init=False)
        counted: int = field(default=0, init=False)

        def __post_init__(self) -> None:
            self.later = self.first + 1

    @make
    class Hashed:
        first: int = 1

        def __hash__(self) -> int:
            return 7

    @make
    class WithOwnInit:
        first: int = 1

        def __init__(self) -> None:
            self.first = 5

    return {made.__name__: made for made in list(locals().values()) if isinstance(made, type)}


OURS, STANDARD = bodies(dataclass), bodies(dataclasses.dataclass)
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "Plain": (1,),
    "Hiding": ("pw",),
    "Of": (1,),
    "Longer": (1, "b", [3]),
    "Open": (1,),
    "Wider": (1, [2], 4),
    "ComparedAsItsBase": (1, [2], 3),
}
KINDS = sorted(OURS)
DERIVED_OPEN = {"Wider", "ComparedAsItsBase"}
OPEN = {"Open", "OpenWithSlots", "OpenByIdentity", "Prepared", "Hashed", "WithOwnInit", *DERIVED_OPEN}
UNHASHABLE = {"Plain", "Longer", *OPEN} - {"OpenByIdentity", "Hashed"}


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """An instance that our own made, and the same one from the standard."""
    arguments = ARGUMENTS.get(request.param, ())
    return OURS[request.param](*arguments), STANDARD[request.param](*arguments)


def test_fields_and_parameters_are_the_same(pair: tuple[Any, Any]) -> None:
    ours, standard = map(type, pair)
    assert [(p.name, p.kind) for p in signature(ours).parameters.values()] == [
        (p.name, p.kind) for p in signature(standard).parameters.values()
    ]
    assert [f.name for f in dataclasses.fields(ours)] == [f.name for f in dataclasses.fields(standard)]
    assert ours.__match_args__ == standard.__match_args__
    assert hasattr(pair[0], "__dict__") == hasattr(pair[1], "__dict__")


def test_values_and_text_are_the_same(pair: tuple[Any, Any]) -> None:
    ours, standard = pair
    assert dataclasses.asdict(ours) == dataclasses.asdict(standard)
    assert repr(ours).replace("bodies.<locals>.", "") == repr(standard).replace("bodies.<locals>.", "")


def test_equality_and_hash_are_the_same(pair: tuple[Any, Any]) -> None:
    for one in pair:
        other = type(one)(*ARGUMENTS.get(type(one).__name__, ()))
        by_value = "ByIdentity" not in type(one).__name__
        assert (one == other) is by_value
        assert one == one
        assert one != "something else"
        if type(one).__name__ in UNHASHABLE:
            with pytest.raises(TypeError, match="unhashable"):
                hash(one)
        else:
            assert (hash(one) == hash(other)) is by_value
    assert pair[0] != pair[1], "they are of different classes"


def test_nothing_can_be_set_or_deleted_unless_the_class_is_open(pair: tuple[Any, Any]) -> None:
    ours, _ = pair
    if type(ours).__name__ in OPEN:
        ours.first = 3
        assert ours.first == 3
        del ours.first
        return
    for name in [one.name for one in dataclasses.fields(ours)]:
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(ours, name, 2)
        with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(ours, name)


def test_no_other_attribute_can_be_set() -> None:
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'z'"):
        Point(1).z = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_instances_can_be_copied(pair: tuple[Any, Any]) -> None:
    for one in pair:
        for made in (copy.copy(one), copy.deepcopy(one)):
            assert dataclasses.asdict(made) == dataclasses.asdict(one)


def test_instances_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 2, ["a"]))) == Point(1, 2, ["a"])


def test_replacing_runs_the_checks() -> None:
    assert replace(Point(1, 2), x=3) == Point(3, 2)
    with pytest.raises(ValueError, match="too small"):
        replace(OURS["Checking"](), first=-1)


def test_a_field_may_have_a_name_that_looks_like_one_of_ours() -> None:
    @dataclass(frozen=True, slots=True)
    class Odd:
        x: int
        set_x: int
        make_x: int = 3
        default_x: list[int] = field(default_factory=lambda: [4])
        make_default_x: int = 5

    assert dataclasses.astuple(Odd(1, 2)) == (1, 2, 3, [4], 5)


def test_each_instance_gets_its_own_default() -> None:
    assert Point(1).tags is not Point(1).tags


def test_a_wrong_call_is_refused_as_usual() -> None:
    with pytest.raises(TypeError, match=re.escape("Point.__init__() missing 1 required positional argument: 'x'")):
        Point()  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(1, z=2)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("kinds", [OURS, STANDARD])
def test_a_keyword_only_field_is_no_position(kinds: dict[str, Any]) -> None:
    assert kinds["Wider"](1, [2], 4, named=5) == kinds["Wider"](1, [2], named=5, third=4)
    with pytest.raises(TypeError, match=re.escape("Wider.__init__() takes from 2 to 4 positional arguments but 5")):
        kinds["Wider"](1, [2], 4, 5)


@pytest.mark.parametrize("kinds", [OURS, STANDARD])
def test_a_class_without_equality_of_its_own_compares_the_fields_of_its_base(kinds: dict[str, Any]) -> None:
    compared = kinds["ComparedAsItsBase"]
    assert compared(1) == compared(1), "the field that they do not share is not compared"
    assert compared(1) != compared(2)
    assert compared(1) != kinds["Open"](1)


def test_only_frozen_classes_may_inherit_from_a_frozen_one() -> None:
    @dataclasses.dataclass(frozen=True)
    class Space(Point):
        z: int = 0

    assert Space(1, z=3) == Space(1, 0, [], 3)
    assert Space(1) != Point(1)
    for make in (dataclass, dataclasses.dataclass):
        with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):

            @make
            class Open(Point):  # pyright: ignore[reportGeneralTypeIssues]
                w: int = 0

        with pytest.raises(TypeError, match="cannot inherit frozen dataclass from a non-frozen one"):

            @make(frozen=True)
            class Shut(OURS["Open"]):
                w: int = 0


def test_classes_share_all_methods_but_one() -> None:
    """This is what makes a start fast: only `__init__` is compiled for each class."""
    shared = ("__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__getstate__", "__setstate__")
    for name in shared:
        assert getattr(Point, name) is getattr(OURS["WithoutSlots"], name), name
    assert OURS["Open"].__repr__ is Point.__repr__
    assert OURS["Open"].__eq__ is Point.__eq__
    assert OURS["Wider"].__eq__ is Point.__eq__


def test_an_init_is_compiled_when_it_is_first_needed() -> None:
    """Half of the classes have no instance while the bot starts."""
    uses: list[Callable[[Any], object]] = [lambda cls: cls(1), signature, lambda cls: type("Sub", (cls,), {})(1)]
    for use in uses:
        made = bodies(dataclass)["Plain"]
        assert not inspect.isfunction(vars(made)["__init__"])
        use(made)
        assert inspect.isfunction(vars(made)["__init__"])
        assert made(1, third=[2]) == made(1, "two", [2])


def test_every_module_uses_it() -> None:
    files = [file for file in (ROOT / "src" / "signoff").rglob("*.py") if file.name != "dataclass.py"]
    standard = re.compile(r"^from dataclasses import .*\bdataclass\b|\bdataclasses\.dataclass\b", re.MULTILINE)
    assert files
    assert [str(file) for file in files if standard.search(file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("make", [dataclasses.dataclass, dataclass])
def test_a_plain_subclass_has_attributes_of_its_own(make: Any) -> None:
    @make(frozen=True)
    class Base:
        first: int = 1

    class Plain(Base):
        def __init__(self) -> None:
            super().__init__()
            self.count = 2

    plain = Plain()
    with pytest.raises(FrozenInstanceError):
        plain.first = 3
    assert copy.copy(plain).count == 2
