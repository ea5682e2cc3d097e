"""The mistakes of a scenario, and values of all kinds that a user may write by mistake."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from heatsim.errors import ScenarioError
from heatsim.scenario import load, parse


def mistakes_of(path: Path, overrides: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Key and message of all mistakes in a scenario's file; each message has one line."""
    with pytest.raises(ScenarioError) as caught:
        load(path, overrides)
    assert str(path) in str(caught.value)
    for problem in caught.value.mistakes:
        assert "\n" not in str(problem)
    return [(problem.key, problem.message) for problem in caught.value.mistakes]


def anything(keys: Sequence[str], words: Sequence[str]) -> st.SearchStrategy[Any]:
    """Values that TOML can hold, including these keys and words."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.dates(),
        st.text(max_size=8),
        st.sampled_from(words),
    )
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(keys) | st.text(max_size=4), inner, max_size=4)
        ),
        max_leaves=12,
    )


def assert_is_read_or_refused(document: dict[str, Any], file: str) -> None:
    """Reading gives a scenario, or mistakes of one line each in the user's terms."""
    try:
        parse(document, file)
    except ScenarioError as error:
        lines = [str(problem) for problem in error.mistakes]
    else:
        return
    assert lines
    for line in lines:
        assert len(line.splitlines()) == 1
        assert "pydantic" not in line
        assert "should be" not in line
