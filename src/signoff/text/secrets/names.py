"""Recognises names whose value is a secret: `db_password`, `apiToken`, `X-Api-Key`, but not `tokens_used`.

Names are compared word by word, so `monkey` does not count as a key. Knows nothing of values, texts or cards.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from signoff.text.patterns import lazy_pattern


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


DEFAULT = (
    *sorted(
        word_set(
            "password passwords passwd pwd passphrase passcode token tokens secret secrets apikey credential "
            "credentials authorization cookie cookies session sessionid mnemonic jwt pin otp totp cvv cvc "
            "passwort kennwort contrasena senha wachtwoord parola haslo losenord adgangskode"
        )
    ),
    *("api key", "access key", "private key", "secret key", "signing key", "encryption key", "master key", "auth key"),
    *("ssh key", "account key", "shared key", "license key", "service key", "session id", "session key"),
    *("seed phrase", "recovery phrase", "recovery code", "recovery codes", "backup codes", "connection string"),
    "mot de passe",
    *("db pass", "user pass", "smtp pass", "mail pass", "root pass", "admin pass", "redis pass", "mysql pass"),
)
"""Each entry is one word, or several words that follow one another in a name."""

PHRASES = frozenset({"passphrase", "mnemonic", "phrase"})
"""Names whose value is expected to be several words."""

# Endings that count even if they are joined to the word before, as in PGPASSWORD or accesstoken.
_TAILS = (
    *("password", "passwort", "kennwort", "passwd", "passphrase"),
    *("secret", "token", "apikey", "accesskey", "secretkey", "privatekey"),
)
# Words that are too common to count unless the name ends with them: `session` does, `session_timeout` does not.
_LAST_ONLY = frozenset({"session", "pin", "otp", "cookie", "cookies", "tokens"})
# After a secret's name, these words name a property of the secret, which people want to read: `password_length`.
_ABOUT = word_set(
    "policy policies type types kind count counts used usage limit limits length len size min max name names file "
    "files filename path paths dir url uri endpoint host hostname server port domain region scheme user username "
    "login email expiry expires expiration ttl age id ids required enabled disabled strength rule rules reset rotation "
    "hint field fields label header headers prefix suffix format budget index scope scopes algorithm version store "
    "manager provider service status valid validity changed updated created at timeout duration title"
)
_COUNTING = word_set(
    "max min num number n total prompt completion input output used cached reasoning estimated average"
)
_WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_CLAUSE = lazy_pattern(r"[.,;:?!()\n]")
_LONGEST = 100

Words = tuple[str, ...]


def words_of(name: str) -> Words:
    """Split a name into words, the same for `Api-Key`, `apiKey` and `API_KEY`. Only the end of a long name is read."""
    return tuple(word.lower() for word in _WORD.findall(name[-_LONGEST:]))


@lru_cache(maxsize=8192)
def says_secret(name: str, known: frozenset[Words]) -> bool:
    """Whether a value with this name must be masked."""
    words = words_of(name)
    return any(not _ABOUT & set(words[end:]) for end in _ends(words, known))


def asks_for_secret(text: str, known: frozenset[Words]) -> bool:
    """Whether a question or a label asks people for a secret: "What is the API key of the server?"."""
    clauses = (tuple(word.lower() for word in _WORD.findall(clause)) for clause in _CLAUSE.split(text))
    return any(not _ABOUT & set(words[end : end + 1]) for words in clauses for end in _ends(words, known))


def _ends(words: Words, known: frozenset[Words]) -> Iterator[int]:
    """Yield where each name of a secret ends among the words."""
    for start in range(len(words)):
        for length in (1, 2, 3):
            end = start + length
            if end > len(words):
                break
            part = words[start:end]
            if part not in known and not (length == 1 and part[0].endswith(_TAILS)):
                continue
            if part[-1] in _LAST_ONLY and end < len(words):
                continue
            if part == ("tokens",) and _COUNTING & set(words):
                continue
            yield end


def is_about(name: str) -> bool:
    """Whether this names something that goes with a secret, such as `username` among credentials."""
    words = words_of(name)
    return bool(words) and words[-1] in _ABOUT


def is_plural(name: str) -> bool:
    """Whether the name is plural, so that a number with this name is a count."""
    return bool(words := words_of(name)) and words[-1].endswith("s")


def expects_words(name: str) -> bool:
    return bool(PHRASES & set(words_of(name)))
