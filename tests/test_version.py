"""One version, wherever the package lies."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from heatsim import version


def test_in_a_checkout_it_is_what_pyproject_says() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    assert version.version() == project["version"]


@pytest.mark.parametrize("beside", ["", '[project]\nname = "other"\nversion = "9"\n', "[project", "[tool]\n"])
def test_elsewhere_it_is_what_was_installed(tmp_path: Path, beside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if beside:
        (tmp_path / "pyproject.toml").write_text(beside)
    monkeypatch.setattr(version, "__file__", str(tmp_path / "heatsim" / "version.py"))
    monkeypatch.setattr(metadata, "version", lambda name: {"heatsim": "1.2.3"}[name])
    assert version.version() == "1.2.3"

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert version.version() == "unknown"
