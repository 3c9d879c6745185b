"""A diff on a card hides what both whole files would hide, and keeps its signs."""

from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.agent.tools.diffs import describe_change, is_diff
from signoff.agent.tools.workspace import ABSENT, Present, digest_of
from signoff.cards.actions import Offers
from signoff.cards.build import build_card
from signoff.cards.masked_diffs import mask_diff, mask_hunks
from signoff.text.secrets.masker import Masker
from tests.rigs.cards import NOW, make_batch, make_request

RANDOM = random.Random(1)
BODY = [base64.b64encode(RANDOM.randbytes(48)).decode() for _ in range(21)]
MASKER = Masker(b"k" * 32)


def key(lines: list[str]) -> str:
    return "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----", ""])


def change(old: str | None, new: str) -> str:
    present = (
        Present(ABSENT, 0, b"") if old is None else Present(digest_of(old.encode()), len(old.encode()), old.encode())
    )
    return describe_change("key.pem", present, new.encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, key(BODY[:20])),
        (key(BODY[:20]), key([*BODY[:10], BODY[20], *BODY[11:20]])),
        (key(BODY[:20]), "no key any more\n"),
        (key(BODY[:20]), key([*BODY[:10], "", *BODY[10:20]])),
    ],
)
def test_no_line_of_a_private_key_is_on_the_card_or_in_its_file(old: str | None, new: str) -> None:
    request = make_request(args={"path": "key.pem", "content": new}, preview=change(old, new), diff_of="content")
    card = build_card(make_batch(request), now=NOW, budget=20_000, offers=Offers(masker=MASKER))
    shown = "\n".join([*(quote.text for quote in card.calls[0].quotes), *(file.data.decode() for file in card.files)])
    assert not [line for line in BODY if line in shown]
    assert "masked 64 characters" in shown


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (key(BODY[:20]), key([*BODY[:10], BODY[20], *BODY[11:20]])),
        (key(BODY[:20]), "no key any more\n"),
        (f"-- x\n{key(BODY[:5])}", f"++ y\n{key(BODY[1:6])}"),
    ],
)
def test_a_diff_that_stands_for_its_effect_is_masked_as_its_lines_would_be(old: str, new: str) -> None:
    texts = {"path": "key.pem", "old_text": "a", "new_text": "b"}
    request = make_request(args=texts, preview=change(old, new), diff_of="old_text,new_text,")
    card = build_card(make_batch(request), now=NOW, budget=20_000, offers=Offers(masker=MASKER))
    shown = "\n".join([*(quote.text for quote in card.calls[0].quotes), *(file.data.decode() for file in card.files)])
    assert not [line for line in BODY if line in shown]
    hunks = mask_hunks(change(old, new), MASKER.mask_untrusted)
    assert [line[:1] for line in hunks.split("\n")] == [line[:1] for line in change(old, new).split("\n")]


def test_a_masked_line_keeps_its_sign() -> None:
    old, new = key(BODY[:3]), key([BODY[4], *BODY[1:3]])
    signs = [line[:1] for line in change(old, new).split("\n")]
    shown = mask_diff(change(old, new), new, MASKER.mask_untrusted).split("\n")
    assert [line[:1] for line in shown] == signs
    assert sum("masked" in line for line in shown) == 4


FILES = st.lists(st.sampled_from(["a", "b", "s", "", "-x", "+x", " ", "@@ -1 +1 @@", "\\ No"]), max_size=30)


@given(FILES, FILES, st.booleans(), st.booleans())
def test_both_files_are_masked_whole(one: list[str], two: list[str], ends: bool, ends_too: bool) -> None:
    old, new = "\n".join(one) + "\n" * ends, "\n".join(two) + "\n" * ends_too
    diff = change(old, new)
    if not is_diff(diff):
        return
    seen: list[str] = []

    def mask(text: str) -> str:
        seen.append(text)
        return text

    assert mask_diff(diff, new, mask) == diff
    assert seen[0] in (old, f"{old}\n", old.removesuffix("\n")), "but for the line break at the end"
    assert seen[1] == new
