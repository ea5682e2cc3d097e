"""The beginning of scenarios of bodies with void regions: rooms and slots."""


def with_void(size: str, cells: str, material: str, numbers: tuple[object, float, float], **rooms: str) -> str:
    """A body of one material with its conductivity, density and specific heat, and boxes of void: "MIN to MAX"."""
    conductivity, density, heat = numbers
    found = f'[domain]\nsize = [{size}]\ncells = [{cells}]\nmaterial = "{material}"\n[materials]\n{material} = '
    found += f"{{ conductivity = {conductivity}, density = {density}, specific_heat = {heat} }}\n"
    for name, corners in rooms.items():
        low, high = corners.split(" to ")
        found += f'[[regions]]\nname = "{name}"\nmaterial = "void"\nbox = {{ min = [{low}], max = [{high}] }}\n'
    return found
