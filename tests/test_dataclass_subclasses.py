"""A plain subclass of a frozen dataclass may have attributes of its own, as with the standard `dataclass`."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from signoff.dataclass import dataclass


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
