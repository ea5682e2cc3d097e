"""How often a command looks for garbage: objects that refer to each other in cycles, and that nothing else needs."""

import atexit
import gc

# New objects after which the interpreter looks. With its default, 700, a short run spends a tenth of its time on it
# while it imports modules, which leave no garbage.
_NEW_OBJECTS = 200_000


def search_rarely() -> None:
    """Let the interpreter look rarely, and not at its end, when it would look at all objects several times."""
    gc.set_threshold(_NEW_OBJECTS)
    atexit.register(gc.freeze)


def search_now() -> None:
    """Search now if searches are rare. Objects of a run that has ended refer to each other, and some hold its field."""
    if gc.get_threshold()[0] == _NEW_OBJECTS:
        gc.collect()
