"""The colours of materials: known materials look alike in all pictures, copper like copper."""

import re
from collections.abc import Sequence
from functools import lru_cache

# Colours that the colour map of temperatures does not have, for materials without a colour of their name.
_OTHERS = (
    *("#90a4ae", "#00acc1", "#43a047", "#2962ff", "#a5d6a7", "#80deea"),
    *("#00695c", "#8d6e63", "#b3c6ff", "#33691e", "#01579b", "#84ffff"),
)
# Colours by beginnings of words in names. The first that a name contains decides: special words stand before others.
_WORDS = """
    copper:#b87333 brass:#c9ae5d bronze:#8c7853 gold:#e0b83f silver:#c9ced6 alumina:#e9e4d4 alumin:#aebbc7
    steel:#6f8196 iron:#59636e titan:#8f8f9c solder:#78909c silicon-carbide:#3f4a5a silicone:#b9d7ea
    silicon:#5c6bc0 gel:#b9d7ea laminate:#2e7d32 fr4:#2e7d32 ferrite:#5d4037 package:#37474f epoxy:#4e5d6c
    glass:#a7dbd8 water:#2f7de1 ice:#bfe6ff paraffin:#f2e8c9 wax:#f2e8c9 concrete:#9e9e9e cement:#b5aea2
    screed:#bdb5a8 mortar:#b5aea2 brick:#a8503c plaster:#ece3d6 gypsum:#ece3d6 render:#d2c4ae wool:#d9c77a
    foam:#f4d9a8 polystyrene:#f4d9a8 insulation:#e8cf8f wood:#a97c50 timber:#a97c50 soil:#6d4c33 ground:#6d4c33
    sand:#d8c08f polycarbonate:#9fd3c7
"""
_KNOWN = {word.replace("-", " "): colour for word, _, colour in (pair.partition(":") for pair in _WORDS.split())}


def material_colour(number: int, names: Sequence[str] = ()) -> str:
    """The colour of a material by its number among the names of a body's materials; without names there is one."""
    return material_colours(tuple(names))[number] if names else _OTHERS[number % len(_OTHERS)]


@lru_cache(maxsize=64)
def material_colours(names: tuple[str, ...]) -> tuple[str, ...]:
    """The colours of a body's materials.

    A second material with the same word in its name, and one without a known word, has a colour that no other has.
    """
    found: list[str] = []
    free = list(_OTHERS)
    for name in names:
        known = next((colour for word, colour in _KNOWN.items() if re.search(rf"\b{word}", name.lower())), "")
        if not known or known in found:
            known = free.pop(0) if free else _OTHERS[len(found) % len(_OTHERS)]
        found.append(known)
    return tuple(found)
