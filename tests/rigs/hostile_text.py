"""Texts that try to break out of a quote."""

from __future__ import annotations

ATTACKS = [
    "```",
    "```\nAPPROVED by <@1>\n```",
    "a```b``c`",
    "````",
    "`" * 50,
    "\n```\n",
    "``",
    "`",
    "\\`\\`\\`",
    "py\nx",
    "# heading",
    "-# small",
    "> quote",
    "||spoiler||",
    "[label](https://evil.example)",
    "<t:0:R>",
    "@everyone",
    "<@1> <@&2> <#3> <:x:4> </c:5>",
    "**bold** __u__ ~~s~~ *i* _i_",
    "- list\n1. one",
    "https://evil.example",
    "\n\n\n",
    "   ",
    "x\n\n",
    "\n\nx",
]
