"""Finds the parts of a value that may be masked if only its name says that it is a secret.

A name is no proof: the model chooses the arguments and may call a command a password. So in a value of several words
only the first one and long mixes of letters and digits are masked. A command's name, an option and a path stay visible.
Pure; knows nothing of masks or cards.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from signoff.text.patterns import lazy_pattern
from signoff.text.secrets.names import word_set
from signoff.text.secrets.shapes import Span

RUN = lazy_pattern(r"[A-Za-z0-9_\-./+=]+")
"""Only text in such a run can ever be masked."""

# This list need not be complete: it is the second defence. The first is that all but the first word stay visible.
_COMMANDS = word_set(
    "sh bash zsh dash ksh fish csh tcsh cmd cmd.exe powershell pwsh busybox env eval exec source command builtin nohup "
    "xargs time watch sudo su doas runas rm rmdir unlink shred dd mkfs wipefs fdisk parted mv cp ln tar zip unzip gzip "
    "cat tee touch find grep sed awk cut head tail ls cd chmod chown chgrp chattr mount umount kill killall pkill "
    "reboot shutdown halt poweroff init systemctl service crontab at batch useradd userdel usermod passwd visudo curl "
    "wget nc ncat netcat socat telnet ssh scp sftp rsync ftp nmap python perl ruby node php lua java go gcc make git "
    "docker podman kubectl helm terraform ansible vagrant aws gcloud az gh npm npx yarn pnpm pip pipx uv cargo apt "
    "apt-get yum dnf apk brew snap pacman rpm dpkg iptables nft ufw ip ifconfig psql mysql sqlite3 mongo redis-cli "
    "drop delete truncate format del erase base64 openssl gpg printenv export unset alias trap true false yes"
)
_OPTION = lazy_pattern(r"-[A-Za-z]{1,3}|--[a-z]+(?:-[a-z]+)*")
_PATH = lazy_pattern(r"(?:\.{1,2})?(?:/[a-z0-9._-]{1,40})+/?")
_PART = lazy_pattern(r"/(?=[a-z._-]{0,40}[0-9])(?=[0-9._-]{0,40}[a-z])[a-z0-9]{20,}")
_SPLITS = lazy_pattern(r"\s|\$\{?IFS")
_WORD = lazy_pattern(r"[^\s\"'`;|&<>(){}$,\\]+")
_SCHEME = lazy_pattern(r"(?i)(?:bearer|basic|token|digest|bot|apikey|negotiate)[ \t]+")
_ADDRESS = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://[^/?#\s]*")
_MIXED = lazy_pattern(r"(?=[A-Za-z_+=-]{0,200}[0-9])(?=[0-9_+=-]{0,200}[A-Za-z])[A-Za-z0-9_+=-]{16,}+")
_VERSION = lazy_pattern(r"[0-9.]+\Z")


def value_spans(text: str, *, phrase: bool = False) -> Iterator[Span]:
    """Yield the parts of a secret value that may be masked. `phrase`: its name says that it consists of words."""
    begin = 0
    if match := _SCHEME.match(text) or _ADDRESS.match(text):
        # The scheme or the address stays visible; a password inside the address is found by its shape.
        begin = match.end()
    if not _SPLITS.search(text, begin) or (phrase and text.replace(" ", "").isalnum()):
        yield Span(begin, len(text), named=True)
        return
    if first := _WORD.search(text, begin):
        yield Span(*first.span(), named=True)
    for run in RUN.finditer(text, begin):
        yield from (Span(run.start() + m.start(), run.start() + m.end(), True) for m in _MIXED.finditer(run[0]))


@lru_cache(maxsize=8192)
def reads_as_command(run: str) -> bool:
    """Whether this is a command's name, an option or an ordinary path: these are shown even if a secret is expected."""
    base = run.rsplit("/", 1)[-1].lower()
    if base in _COMMANDS or _VERSION.sub("", base) in _COMMANDS or _OPTION.fullmatch(run):
        return True
    return bool(_PATH.fullmatch(run)) and not _PART.search(run)
