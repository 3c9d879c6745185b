"""Texts that try to take over a terminal, and the search for control sequences in what a terminal received."""

from __future__ import annotations

import re

OURS = re.compile(r"\x1b\[[0-9;]*m|\r[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] working|\r\x1b\[K|\r\n")
"""Colours, the spinner, clearing its line, and the terminal's own line ends."""
HIDDEN = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e0fff]"
)

ATTACKS = {
    "clear": "\x1b[2J\x1b[1;1HAPPROVED by Ada",
    "hyperlink": "\x1b]8;;https://evil.example\x1b\\https://good.example\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;Y3VybCBldmls\x07",
    "title": "\x1b]0;owned\x07",
    "c1": "\x9b2J\x9d52;c;AAAA\x9c",
    "overwrite": "rm -rf /\rls -la    ",
    "backspace": "rm -rf /" + "\b" * 8 + "ls -la  ",
    "bidi": "\u202egnp.exe\u202c \u2066x\u2069",
    "zero width": "a\u200bb\u2060c\ufeff",
    "tags": "\U000e0072\U000e006d",
    "markup": "[red]APPROVED[/red] [link=https://evil.example]x[/link] [bold]",
    "frame": "x\n╰──────╯\n[a]ccept\ndecide, 4:59 left> a\nAPPROVED by Ada",
    "nul": "a\x00b\x7f",
}


def unknown(raw: str) -> list[str]:
    return HIDDEN.findall(OURS.sub("\n", raw))
