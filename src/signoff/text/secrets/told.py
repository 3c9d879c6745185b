"""Finds passwords that a command, a statement or a sentence names: `mysql -pX`, "the password is X".

Every expression starts at a fixed mark and reads a limited number of characters after it, so that no text, however
long, makes it slow. Knows nothing of masks or cards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from signoff.text.secrets.names import word_set

_VALUE = r"[\"'`]?([^\s\"'`\\‹;|&<>(){}]++)"
_NEAR = 200
"""How many characters after a command its password is looked for."""
_COMMAND = re.compile(r"sshpass|mysql|mariadb|mongo|redis-cli|sqlcmd|ldap|smbclient|zip|7z")
_END_OF_COMMAND = re.compile(r"[\n;|&‹]")
_JOINED = re.compile(rf"[ \t]-p{_VALUE}")
_SPACED = re.compile(rf"[ \t]-p[ \t]{{1,8}}{_VALUE}")
_CAPITAL = re.compile(rf"[ \t]-P[ \t]{{0,8}}{_VALUE}")
_OPTION = {
    "sshpass": re.compile(rf"[ \t]-p[ \t]{{0,8}}{_VALUE}"),
    "mysql": _JOINED,
    "mariadb": _JOINED,
    "7z": _JOINED,
    "mongo": _SPACED,
    "redis-cli": re.compile(rf"[ \t]-a[ \t]{{1,8}}{_VALUE}"),
    "sqlcmd": _CAPITAL,
    "zip": _CAPITAL,
    "ldap": re.compile(rf"[ \t]-w[ \t]{{1,8}}{_VALUE}"),
    "smbclient": re.compile(rf"[ \t]-U[ \t]{{0,8}}[\"']?[^\s%\"'‹]{{1,100}}%{_VALUE}"),
}
"""Command -> its option that carries a password."""

_PASSWORD = r"[pPkK](?i:(?<=p)ass(?:wor[dt]|wd|phrase|code)|(?<=k)ennwort)"
_QUOTED = r"[ \t]{0,8}\(?[ \t]{0,8}(?:[nN](?='))?[\"'`]([^\s\"'`\\‹]++)"
_STATEMENTS = (
    re.compile(_PASSWORD + _QUOTED),
    re.compile(
        r"[iI](?i:dentified[ \t\r\n]{1,8}(?:(?:with|via)[ \t]{1,8}[\w\"'`]{1,60}[ \t]{1,8})?(?:by|as|using)"
        rf"(?:[ \t]{{1,8}}password)?){_QUOTED}"
    ),
)

_SAYS = r"(?i:[\"'*_`]{0,3}[ \t]{1,8}(?:is|was|ist|war|lautet)(?:[ \t]{1,8}(?:now|jetzt))?)[ \t]{0,4}:?[ \t]{1,4}"
_SENTENCES = (
    re.compile(rf"{_PASSWORD}{_SAYS}{_VALUE}"),
    re.compile(rf"[mM](?i:ot de passe[ \t]{{0,4}}(?::|=|[ \t]est[ \t]))[ \t]{{0,8}}{_VALUE}"),
    # Other names are common in prose, so only a value with a digit counts: "the token is abc123".
    re.compile(rf"[tT](?i:oken){_SAYS}(?=[^\s]{{0,80}}[0-9]){_VALUE}"),
    re.compile(rf"[sS](?i:ecret){_SAYS}(?=[^\s]{{0,80}}[0-9]){_VALUE}"),
    re.compile(rf"[kK](?i:ey){_SAYS}(?=[^\s]{{0,80}}[0-9]){_VALUE}"),
    re.compile(rf"[pP](?i:in){_SAYS}(?=[0-9]{{3,8}}\b){_VALUE}"),
)
# Words that follow "the password is" in ordinary sentences.
_PROSE = word_set(
    "a about all also always an and any as at being blank both but by case changed compromised correct different "
    "displayed easy empty encrypted entered enough exactly expired fine for from generated given good hard hashed "
    "here hidden if in incorrect invalid it kept known leaked long longer masked missing more my needed never new "
    "no not now null of ok old on one only optional or our part printed probably protected random really required "
    "reset right safe same saved secret secure sent set short shorter shown so still stored strong supposed sure "
    "that the their there this to too true unchanged undefined unique unknown unset up used valid very visible "
    "weak well what when where with wrong yes your abgelaufen das der die ein eine erforderlich falsch gesetzt "
    "hier leer nicht noch richtig sicher zu"
)

_OTHER_SCRIPTS = re.compile(
    r"(?i:contraseña|lösenord|hasło|пароль|密码|密碼|パスワード|비밀번호)"
    + r"[\"'\]]{0,2}[ \t]{0,8}(?:=|:|：|是|は)[ \t]{0,8}"
    + _VALUE
)


def told_places(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each password that the text names in one of these ways."""
    yield from _in_commands(text)
    for pattern in _STATEMENTS:
        for match in pattern.finditer(text):
            yield match.span(1)
    for pattern in _SENTENCES:
        for match in pattern.finditer(text):
            if match[1].lower().rstrip(".,:!?") not in _PROSE:
                yield match.span(1)
    if not text.isascii():
        yield from (match.span(1) for match in _OTHER_SCRIPTS.finditer(text))


def _in_commands(text: str) -> Iterator[tuple[int, int]]:
    read: dict[str, int] = {}
    """Command -> the position up to which the text was read for it."""
    for command in _COMMAND.finditer(text):
        begin = command.end()
        if begin < read.get(command[0], 0):
            continue
        end = _END_OF_COMMAND.search(text, begin, begin + _NEAR)
        option = _OPTION[command[0]].search(text, begin, end.start() if end else begin + _NEAR)
        read[command[0]] = option.end() if option else end.start() if end else begin + _NEAR // 2
        if option:
            yield option.span(1)
