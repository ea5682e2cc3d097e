"""Numbers of things in texts."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 row", "2,000 rows".

    Args:
        count: the number.
        noun: the noun after 1.
        plural: the noun after other numbers; by default the noun with an "s".
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
