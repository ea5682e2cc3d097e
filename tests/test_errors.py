"""Errors advise what to write at the command line, and a note below them what to write in Python."""

import pytest

from heatsim.errors import FolderError, at_command_line


@pytest.mark.parametrize(
    ("message", "note"),
    [
        (
            "outputs/a: continue it with `heatsim resume outputs/a`, replace it with --overwrite, or choose another "
            "--output",
            'heatsim.Simulation.resume("outputs/a").run(); overwrite=True; output=…',
        ),
        ("continue with `heatsim resume '/my runs/a'`", 'heatsim.Simulation.resume("/my runs/a").run()'),
        (
            "`heatsim study '/a b/s.toml' --output out`",
            'heatsim.Study.from_scenario("/a b/s.toml", output="out").run()',
        ),
        ("add them with --extend", "extend=True"),
        ("run it with `heatsim study`, or remove this table", "heatsim.Study.from_scenario(…)"),
    ],
)
def test_python_has_its_own_advice(message: str, note: str) -> None:
    assert FolderError(message).__notes__ == [f"In Python: {note}"]
    assert str(FolderError(message)) == message
    with at_command_line():
        assert not hasattr(FolderError(message), "__notes__")


def test_other_messages_have_no_note() -> None:
    assert not hasattr(FolderError("outputs/a: is a file"), "__notes__")
