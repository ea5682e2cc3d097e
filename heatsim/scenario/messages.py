"""Messages about mistakes: values as TOML shows them, nearest names, and errors at a key within a value."""

import difflib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

Model = TypeVar("Model")
KNOWN_TYPES = frozenset(get_args(ErrorType))
SHOWN_LENGTH = 80
SHOWN_DEPTH = 4
# Classes of characters that set the direction of the text after them, up to the end of a line.
_DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
KEY_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[^.]+')


# Words of other programs and symbols of textbooks, and the names for them here.
_OTHER_NAMES = {
    "adiabatic": "insulated",
    "alpha": "coefficient",
    "average": "mean",
    "avg": "mean",
    "bottom": "z_min",
    "cp": "specific_heat",
    "dirichlet": "temperature",
    "double": "float64",
    "duration": "end",
    "eps": "emissivity",
    "epsilon": "emissivity",
    "gpu": "cuda",
    "h": "coefficient",
    "heat_capacity": "specific_heat",
    "htc": "coefficient",
    "k": "conductivity",
    "lambda": "conductivity",
    "left": "x_min",
    "ln": "log",
    "neumann": "flux",
    "rho": "density",
    "right": "x_max",
    "robin": "convection",
    "single": "float32",
    "t_amb": "ambient",
    "t_end": "end",
    "t_inf": "ambient",
    "top": "z_max",
}


def suggest(name: str, known: Iterable[str]) -> str | None:
    """The name in ``known`` that ``name`` means or nearly spells, or None if there is none."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    if (meant := _OTHER_NAMES.get(name.casefold())) in by_folded:
        return by_folded[meant]
    # In a name of three letters, one letter is a large difference: "gpu" is not a misspelling of "cpu".
    cutoff = 0.6 if len(name) > 3 else 0.7
    nearest = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=cutoff)
    return by_folded[nearest[0]] if nearest else None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The text ``; did you mean "x"?``, or "" if no known name is near."""
    nearest = suggest(name, known) if isinstance(name, str) else None
    return f'; did you mean "{nearest}"?' if nearest else ""


def has_control_characters(text: str) -> bool:
    """Whether a text has characters that would break a line, a terminal or a UTF-8 file, or turn what follows."""
    return any(
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(character) in _DIRECTIONS
        for character in text
    )


def refuse_control_characters(text: str) -> None:
    """Raise a ValueError that names the first character of a text for which :func:`has_control_characters` looks."""
    for character in text:
        if has_control_characters(character):
            raise ValueError(f"got {show(text)}; remove the character U+{ord(character):04X}: a terminal would obey it")


def show(value: object) -> str:
    """A value as TOML writes it, on one line and cut to 80 characters."""
    text = _toml(value, SHOWN_DEPTH)
    return text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"


def show_key(parts: Sequence[str | int]) -> str:
    """The dotted path of a key, with TOML's quotes around the parts that need them."""
    return ".".join(_key(str(part)) for part in parts)


def split_key(key: str) -> list[str]:
    """The parts of a path that :func:`show_key` wrote."""
    return [str(json.loads(part)) if part[0] == '"' else part for part in KEY_PART.findall(key)]


def fault(message: str, at: Sequence[str | int] = ()) -> InitErrorDetails:
    """One error in the value that is being validated; ``at`` is the key within the value."""
    return InitErrorDetails(
        type=PydanticCustomError("heatsim", "{message}", {"message": message}), loc=tuple(at), input=None
    )


def refuse(faults: Sequence[InitErrorDetails]) -> NoReturn:
    """Raise a ValidationError with several errors, each at its key within the value."""
    raise ValidationError.from_exception_data("scenario", list(faults))


def validate_beside(faults: Sequence[InitErrorDetails], validate: Callable[[Any], Model], value: Any) -> Model:
    """Validate a value; raise ``faults`` together with the errors that the validation finds.

    For a ``model_validator`` of mode "wrap": a mistake in one key must not hide a mistake between keys.
    """
    try:
        model = validate(value)
    except ValidationError as error:
        found = [
            InitErrorDetails(
                type=details["type"] if details["type"] in KNOWN_TYPES else _as_custom(details),
                loc=details["loc"],
                input=details["input"],
                ctx=details.get("ctx", {}),
            )
            for details in error.errors()
        ]
        refuse([*found, *faults])
    if faults:
        refuse(faults)
    return model


def _as_custom(details: ErrorDetails) -> PydanticCustomError:
    return PydanticCustomError("heatsim", "{message}", {"message": details["msg"]})


def key_faults(
    table: Mapping[str, object], required: Mapping[str, str], optional: Sequence[str] = ()
) -> list[InitErrorDetails]:
    """Errors for the unknown and the missing keys of a table; ``required`` has an example for each required key."""
    known = [*required, *optional]
    faults = [fault(unknown_key(key, value, known), (key,)) for key, value in table.items() if key not in known]
    return faults + [fault(missing_key(example), (key,)) for key, example in required.items() if key not in table]


def unknown_key(key: str, value: object, known: Sequence[str]) -> str:
    """The message for an unknown key."""
    return f"got {show(value)}; unknown key: the keys allowed here are {', '.join(known)}{did_you_mean(key, known)}"


def missing_key(example: str) -> str:
    """The message for a missing key."""
    return f"missing; write for example {example}"


def faults_of_one(table: object, keys: Sequence[str], example: str) -> list[InitErrorDetails]:
    """Errors of a table that does not have exactly one of some keys; ``example`` has one of them."""
    given = [key for key in keys if key in table] if isinstance(table, Mapping) else list(keys[:1])
    if len(given) > 1:
        choice = "one of them" if len(keys) == 2 else f"exactly one of {', '.join(keys)}"
        return [fault(f"got {' and '.join(given)}; write {choice}", (given[-1],))]
    return [] if given else [fault(missing_key(example), (keys[0],))]


def _toml(value: object, depth: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        # Python refuses to print integers of thousands of digits.
        return repr(value) if value.bit_length() < 512 else "an integer of more than 150 digits"
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, Mapping):
        if depth == 0:
            return "{…}"
        pairs = ", ".join(f"{_key(str(key))} = {_toml(item, depth - 1)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        if depth == 0:
            return "[…]"
        # Every item takes at least two characters, so later items would be cut off anyway.
        return "[" + ", ".join(_toml(item, depth - 1) for item in value[:SHOWN_LENGTH]) + "]"
    return str(value)


def _quoted(text: str) -> str:
    quoted = json.dumps(text[: 2 * SHOWN_LENGTH], ensure_ascii=False)
    return "".join(
        f"\\u{ord(character):04x}" if has_control_characters(character) else character for character in quoted
    )


def _key(part: str) -> str:
    bare = part != "" and all(character.isascii() and (character.isalnum() or character in "_-") for character in part)
    return part if bare else _quoted(part)
