"""Random expressions of the whole grammar."""

from random import Random

from heatsim.scenario.values.expressions import Expression

_SMOOTH = ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "log10", "sqrt"]
_OTHERS = ["abs", "floor", "ceil", "sign"]


def random_expression(seed: int, names: tuple[str, ...]) -> Expression:
    """An expression in some of the variables, up to four operations deep."""
    random = Random(seed)
    some = random.sample(names, random.randint(1, min(3, len(names))))
    while True:
        text = _part(random, some, random.randint(1, 4))
        expression = Expression(text, names)
        if expression.used:
            return expression


def _part(random: Random, names: list[str], depth: int) -> str:
    kind = random.random()
    if depth == 0 or kind < 0.1:
        number = random.choice([0.0, 1.0, 2.0, 0.5, 10.0, 1e-3, random.uniform(-3.0, 3.0)])
        return random.choice([*names, *names, *names, "pi", f"({number:.4g})"])

    def parts(count: int) -> list[str]:
        # Not twice the same: no engineer writes x - x.
        found: list[str] = []
        while len(found) < count:
            part = _part(random, names, depth - 1)
            if part not in found:
                found.append(part)
        return found

    if kind < 0.5:
        operator = random.choice("++--***//%")
        return f"({operator.join(parts(2))})"
    if kind < 0.57:
        exponent = random.choice(["2", "3", "4", "0.5", "1.5", "(-1)", "(-2)", *parts(1)])
        return f"({parts(1)[0]}^{exponent})"
    if kind < 0.63:
        a, b, yes, no = parts(4)
        return f"where({a} {random.choice(['<', '<=', '>', '>='])} {b}, {yes}, {no})"
    if kind < 0.65:
        a, b, c, yes, no = parts(5)
        return f"where({a} < {b} {random.choice(['and', 'or'])} not {b} > {c}, {yes}, {no})"
    if kind < 0.7:
        return f"{random.choice(['min', 'max'])}({', '.join(parts(random.randint(2, 3)))})"
    if kind < 0.72:
        return f"atan2({', '.join(parts(2))})"
    return f"{random.choice(_SMOOTH if kind < 0.92 else _OTHERS)}({parts(1)[0]})"
