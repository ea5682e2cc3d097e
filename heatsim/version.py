"""The version of heatsim: what pyproject.toml says in a checkout, what was installed elsewhere.

NUMERICS is the version of the numerics: it goes up with every change after which the same scenario gives other bits. A
run that began with one version cannot be finished with another.
"""

from pathlib import Path

NUMERICS = 19


def version() -> str:
    """For instance "0.1.0"; "unknown" for a package that was copied without either.

    A checkout's own pyproject.toml goes first: what pip noted down may be of an older state, or of another checkout.
    """
    import tomllib
    from importlib import metadata

    try:
        project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
        if project["name"] == "heatsim":
            return str(project["version"])
    except (OSError, ValueError, KeyError):
        pass
    try:
        return metadata.version("heatsim")
    except metadata.PackageNotFoundError:
        return "unknown"
