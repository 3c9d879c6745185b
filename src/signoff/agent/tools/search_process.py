"""A program of its own: searches texts with a regular expression. It reads a JSON object and writes JSON lines.

A regular expression can take for ever and cannot be interrupted, so it must not run in the bot's process. The bot kills
this program after a time limit.
"""

from __future__ import annotations

import json
import re
import sys

LONGEST_LINE = 300


def main() -> None:
    asked = json.load(sys.stdin)
    pattern = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
    left: int = asked["most"]
    for path, text in asked["texts"]:
        for number, line in enumerate(text.split("\n"), 1):
            if pattern.search(line):
                if not left:
                    print(json.dumps("more"))
                    return
                left -= 1
                cut = line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} [cut]"
                print(json.dumps(f"{path}:{number}: {cut}"))


if __name__ == "__main__":
    main()
