"""Characters that pass for others: a compact table, by script, of letters and signs that look like ASCII.

Data and its two lookups only. It need not be complete: words that mix scripts are found without it; it serves words
spelled wholly in another script. Written as code points, since a table of look-alikes cannot be proofread by eye.
"""

from __future__ import annotations

_LETTERS = {
    "Cyrillic": "0430a 0441c 0435e 043Eo 0440p 0445x 0443y 0456i 0458j 0455s 04BBh 0501d 051Bq 051Dw 04CFl 043Ak 0475v "
    "0410A 0412B 0421C 0415E 041DH 0406I 0408J 041AK 041CM 041EO 0420P 0405S 0422T 0425X 0423Y 04C0I 0474V 051CW",
    "Greek": "03BFo 03BDv 03B1a 03B9i 03C1p 03BAk 03C5u 03C7x 03B3y 03C9w 03C4t 03B7n 03F2c 03F3j "
    "0391A 0392B 0395E 0396Z 0397H 0399I 039AK 039CM 039DN 039FO 03A1P 03A4T 03A5Y 03A7X",
    "Armenian": "0585o 057Du 0570h 0578n 0581g 0566q 0561w 0575j 0555O 054DU 054FS",
    "Cherokee": "13A0D 13A1R 13A2T 13A9Y 13AAA 13ABJ 13ACE 13B3W 13B7M 13BBH 13C0G 13C2h 13C3Z 13CFb 13D2R 13D4W 13D9V "
    "13DAS 13DEL 13DFC 13E2P 13E6K 13F3G 13F4B",
    "Lisu": "A4D0B A4D1P A4D3D A4D4T A4D6G A4D7K A4D9J A4DAC A4DCZ A4DDF A4DFM A4E0N A4E1L A4E2S A4E3R A4E6V A4E7H "
    "A4EAW A4EBX A4ECY A4EEA A4F0E A4F2I A4F3O A4F4U",
    # Latin letters, but no alphabet in daily use mixes them with a to z.
    "unusual Latin": "0251a 0261g 026Ai 0280R 0262G 0299B 029CH 0274N 029FL 028FY "
    "1D00A 1D04C 1D05D 1D07E 1D0AJ 1D0BK 1D0DM 1D0FO 1D18P 1D1BT 1D1CU 1D20V 1D21W 1D22Z",
}
_SIGNS = (
    "2044/ 2215/ 29F8/ 2571/ 2024. A4F8. 3002. FF61. A789: 2236: 02D0: 05C3: FF1A: FF0F/ FF0E. FF20@ FF1F? FF03# "
    "037E; FF1B; 01C3! 01C0| 2223| FF5C| 2010- 2011- 2212- FE63- FF0D- 2216\\ FF3C\\ 29F5\\ FF06& FF04$ FF40` FF1D="
)


def _pairs(table: str) -> dict[str, str]:
    return {chr(int(entry[:-1], 16)): entry[-1] for entry in table.split()}


TWINS = {script: _pairs(table) for script, table in _LETTERS.items()}
"""Script -> letter -> the ASCII letter it looks like."""

SIGNS = _pairs(_SIGNS)
"""Sign -> the ASCII sign it looks like."""


def imitates(word: str) -> tuple[str, str] | None:
    """(script, what it reads as) if every letter of the word looks like an ASCII letter but is of another script."""
    for script, letters in TWINS.items():
        if all(c in letters or (c.isascii() and not c.isalpha()) for c in word) and any(c in letters for c in word):
            return script, "".join(letters.get(c, c) for c in word)
    return None
