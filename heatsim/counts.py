"""Numbers of things and time spans in texts."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 row", "2,000 rows".

    Args:
        count: the number.
        noun: the noun after 1.
        plural: the noun after other numbers; by default the noun with an "s".
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def duration(seconds: float) -> str:
    """A time span in the unit that suits it, such as "about 41 min"."""
    if seconds < 1.0:
        return "less than 1 s"
    for unit, length, most in (("s", 1.0, 100.0), ("min", 60.0, 100.0), ("h", 3600.0, 48.0)):
        if seconds / length < most:
            return f"about {seconds / length:.2g} {unit}"
    days = seconds / 86400.0
    return f"about {days:,.0f} days" if days < 1000.0 else f"about {days / 365.25:,.0f} years"
