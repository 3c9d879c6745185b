"""The `dataclass` that Signoff uses instead of the standard one, which it calls. It means the same, and loads faster.

The standard one writes and compiles up to six methods for each class. Signoff has three hundred such classes, and that
was half of the time in which its modules load. Here the classes share the methods that need not differ. Only
`__init__` is compiled for each class, and not before it is needed: half of the classes have no instance at the start.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType, MethodType
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def dataclass(cls: type[T], /) -> type[T]: ...


@overload
def dataclass(*, eq: bool = True, frozen: bool = False, slots: bool = False) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(cls: type[Any] | None = None, /, *, eq: bool = True, frozen: bool = False, slots: bool = False) -> Any:
    """Make a dataclass. Its fields do not take `hash`, and none is an `InitVar`."""

    def make(cls: type[Any]) -> type[Any]:
        # The standard one would write the signature into a class without docstring, which takes long to find out.
        cls.__doc__ = cls.__doc__ or cls.__name__
        return _sharing(cls, eq, frozen, slots)

    return make if cls is None else make(cls)


def _sharing(cls: type[Any], eq: bool, frozen: bool, slots: bool) -> type[Any]:
    is_derived = any(map(dataclasses.is_dataclass, cls.__bases__))
    shared = {"__repr__": _repr} | (_FROZEN if frozen and not is_derived else {})
    if eq:
        shared |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
    for name, method in shared.items():
        if name not in vars(cls):
            setattr(cls, name, method)
    # The standard one refuses to mix frozen and open classes, so it has to know which of them a derived class is.
    made = dataclasses.dataclass(cls, init=False, repr=False, eq=False, frozen=frozen and is_derived, slots=slots)
    made.__dataclass_params__.frozen = frozen  # so that only frozen classes inherit from it
    if "__init__" not in vars(made):
        made.__init__ = _Init(made)
    if eq:  # otherwise it compares as its base does
        compared = [field.name for field in dataclasses.fields(made) if field.compare]
        made._compared = attrgetter(*compared or ["__class__"])  # instances without fields are all equal
    return made


class _Init:
    """Stands for the `__init__` of a class until it is first asked for, and compiled."""

    def __init__(self, cls: type[Any]) -> None:
        self._cls = cls

    def __get__(self, instance: Any, owner: type[Any]) -> Callable[..., None]:
        self._cls.__init__ = made = _compiled_init(self._cls)
        return made if instance is None else MethodType(made, instance)


def _compiled_init(cls: type[Any]) -> Callable[..., None]:
    """Compile an `__init__` that sets the fields; in a frozen class past `__setattr__`, which refuses."""
    # These names begin with two underscores, as no field's name does within a class.
    known: dict[str, Any] = {"__set": object.__setattr__, "__MISSING": MISSING}
    parameters, keywords, body = ["self"], ["*"], ["pass"]
    for field in dataclasses.fields(cls):
        name, parameter, value = field.name, field.name, field.name
        if field.default is not MISSING:
            known[f"__default_{name}"] = field.default
            parameter = f"{name}=__default_{name}"
        elif field.default_factory is not MISSING:
            known[f"__make_{name}"] = field.default_factory
            parameter = f"{name}=__MISSING"
            value = f"__make_{name}() if {name} is __MISSING else {name}"
        elif not field.init:
            continue  # `__post_init__` sets it
        # A field that is no parameter becomes a statement: it has the same form, and sets a variable of that name.
        (body if not field.init else keywords if field.kw_only else parameters).append(parameter)
        if not cls.__dataclass_params__.frozen:
            body.append(f"self.{name} = {value}")
        elif isinstance(slot := getattr(cls, name, None), MemberDescriptorType):
            known[f"__set_{name}"] = slot.__set__  # twice as fast as to look for the slot each time
            body.append(f"__set_{name}(self, {value})")
        else:
            body.append(f"__set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    if len(keywords) > 1:
        parameters += keywords
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body), known)
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"  # errors about wrong arguments name it
    return made


# The methods that classes share


@recursive_repr("...")
def _repr(self: Any) -> str:
    shown = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> bool:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _is_frozen(self: Any, name: str) -> bool:
    """Whether the attribute may not change. A plain subclass may have attributes of its own, which may."""
    return "__dataclass_fields__" in type(self).__dict__ or name in self.__dataclass_fields__


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _state(self: Any) -> dict[str, Any]:
    return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)} | getattr(self, "__dict__", {})


def _set_state(self: Any, state: Mapping[str, Any]) -> None:
    """Fill a copy, or an instance that was pickled."""
    for name, value in state.items():
        object.__setattr__(self, name, value)


_FROZEN: dict[str, Any] = {
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _state,
    "__setstate__": _set_state,
}
