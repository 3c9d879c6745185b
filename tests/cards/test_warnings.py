"""Warnings: no text gets fewer of them because it looks ordinary at first sight."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from signoff.cards.warnings import PADDING, warnings_in
from signoff.text.lookalikes import lookalikes
from signoff.text.visible import visible
from tests.rigs.any_arguments import TEXT

PARTS = st.lists(
    st.sampled_from(
        ["a", "/", ".com", " ", " " * (PADDING - 1), "\t", "\n", "xn", "--", "XN--", "\u0430", "\u202e", "\x7f"]
    ),
    max_size=8,
).map("".join)


@given(PARTS | TEXT, st.booleans())
@example("https://XN--pple-43d.com", False)
@example("a" + "\t" * PADDING + "b", False)
@example("a" + " \t" * (PADDING // 2), False)
@example("\x7f", False)
def test_every_finding_becomes_a_warning(text: str, is_long: bool) -> None:
    text = text + "\nword" * 500 if is_long else text
    texts = [warning.text for warning in warnings_in("here", [text])]
    widest = max((len(run) for run in re.findall(r"[ \t]+", text)), default=0)
    padding = [f"contains a run of {widest} spaces or tabs"] if widest >= PADDING else []
    assert texts == [f"here: {one}" for one in dict.fromkeys([*visible(text).findings, *lookalikes(text), *padding])]
