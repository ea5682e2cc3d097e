"""Messages about text that is not TOML: the line, and what to write instead."""

import re

from heatsim.scenario.messages import SHOWN_LENGTH, has_control_characters

_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")
_DECIMAL_COMMA = re.compile(r"\d,\d+")
# The group is found if there is only one comma, which may also be a decimal point.
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:(,\d{3})|(?:,\d{3}){2,})(?![\d,])")
_NUMBER = re.compile(r"[=,\[]\s*[-+]?[\d.]+(e[-+]?\d+)?\s*", re.IGNORECASE)
_LOGICAL = re.compile(r"(true|false)\b", re.IGNORECASE)
_TWICE = ("Cannot overwrite", "Cannot declare", "Cannot mutate")
_SECOND = "this key or table is there a second time: remove one of them"
_DIGITS = "Exceeds the limit"  # of Python, for whole numbers
_OPEN_TEXT = r"Illegal character '\n'"
# Characters of word processors and of other languages that look like those of TOML.
_MEANT = {
    **dict.fromkeys("“”„‟″«»", 'a straight quote "'),
    **dict.fromkeys("‘’‚‛′`´", "a straight quote '"),
    **dict.fromkeys("−–—‐‑", "a plain minus sign -"),
    **dict.fromkeys("\u00a0\u2007\u2009\u202f\u3000", "a plain space"),
    ":": "an equals sign =",
}


def describe_error(text: str, error: ValueError) -> str:
    """One line about an error of ``tomllib`` in a text: the parser's words, the line, and advice for usual mistakes."""
    message = str(error)
    if message.startswith(_DIGITS):
        return "a whole number has thousands of digits"
    place = _PLACE.search(message)
    if place is None:
        return f"{message}; {_SECOND}" if message.startswith(_TWICE) else message
    column = int(place[2]) - 1
    line = text.replace("\r\n", "\n").split("\n")[int(place[1]) - 1]
    advice = _advice(message, line, column)
    return f"{message}: {_part(line, column)}{f'; {advice}' if advice else ''}"


def _part(line: str, column: int) -> str:
    """The line, or the part of it around a column, without characters that would break a terminal."""
    start = max(0, column - SHOWN_LENGTH // 2) if len(line) > SHOWN_LENGTH else 0
    return "".join("?" if has_control_characters(each) else each for each in line[start : start + SHOWN_LENGTH]).strip()


def _advice(message: str, line: str, column: int) -> str:
    """What to write instead; "" if this is not clear."""
    before, found = line[:column], line[column : column + 1]
    if message.startswith(_TWICE):
        return _SECOND
    if message.startswith(_OPEN_TEXT):
        return "close the quotes of the text"
    if found in _MEANT:
        return f'write {_MEANT[found]} instead of "{found}"'
    if any(match.start() < column <= match.end() for match in _DECIMAL_COMMA.finditer(line)):
        thousands = _THOUSANDS.search(line)
        if thousands:
            plain = thousands[0].replace(",", "")
            point = f", or {thousands[0].replace(',', '.')} if the comma is a decimal point" if thousands[1] else ""
            return f"write {plain}{point}"
        return "write a number with a decimal point, such as 0.5"
    if _LOGICAL.match(line, column):
        return "write true or false in small letters"
    if found.isalpha() and any(match.end() == column for match in _NUMBER.finditer(before)):
        return 'write a value and its unit as a text in quotes, such as "5 mm"'
    if message.startswith("Unclosed array"):
        return "close the bracket [ of a list with ], here or in a line above"
    if message.startswith("Unescaped '\\'"):
        return "write / instead of \\ in a path, or the text in single quotes"
    return 'write a text in quotes, such as "cpu"' if found.isalpha() and before.rstrip().endswith("=") else ""
