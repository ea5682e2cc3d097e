"""A rung of the ladder as one file of CUDA C that stands alone: `heatsim kernels --listing 04`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from heatsim.errors import InputError
from heatsim.grid import Grid
from heatsim.kernels.catalog import KERNELS, KernelSpec
from heatsim.kernels.compilation import FOLDER, Build, build

_GRID = Grid((64, 64, 64), (1.0, 1.0, 1.0))  # its rows have whole vectors
_DIRECTIVE = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif|include|define)\b\s*(.*)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ARCHITECTURE = "__CUDA_ARCH__"  # known to the compiler only


def rung(wanted: str) -> KernelSpec:
    """The kernel of a number, such as "04", or of a name.

    Raises:
        InputError: there is none.
    """
    rungs = {spec.source[:2]: spec for spec in KERNELS if spec.backend == "cuda"}
    named = {spec.name: spec for spec in rungs.values()}
    found = rungs.get(wanted.zfill(2)) or named.get(wanted)
    if found is None:
        known = ", ".join(f"{number} ({spec.name})" for number, spec in rungs.items())
        raise InputError(f'"{wanted}" is no rung of the ladder; there are {known}')
    return found


def listing(spec: KernelSpec) -> str:
    """The kernel for one constant material in float32, with its headers inserted and without code for other builds."""
    its_build = build(spec, "float32", "increments", _GRID)
    macros = dict(option.removeprefix("-D").split("=") for option in its_build.options if option.startswith("-D"))
    resolver = _Resolver(dict(macros))
    body = "\n".join(resolver.lines(spec.source)) + "\n"
    defined = "".join(f"#define {name} {value}\n" for name, value in macros.items())
    text = _without_idle_macros(f"{_heading(spec, its_build)}{defined}\n{body}")
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"\n// ---- .* ----\s*$", "", text))


def _heading(spec: KernelSpec, its_build: Build) -> str:
    threads, cells = (" × ".join(map(str, three)) for three in (spec.block, its_build.tile))
    writes = "" if spec.resident or its_build.pipeline else f"; each writes {cells} cells"
    shared = f"; {its_build.shared_bytes:,} bytes of dynamic shared memory" if its_build.shared_bytes else ""
    return (
        f"// {spec.source} of heatsim: {spec.idea}. One constant material, float32, rows of whole vectors.\n"
        f"// A block has {threads} threads{writes}{shared}.\n"
        f"// nvcc -std=c++17 --fmad=false -arch=native -c {spec.source}\n\n"
    )


@dataclass
class _Condition:
    """An #if that is open.

    Attributes:
        outer: whether the lines around it are kept.
        live: whether the lines of this branch are kept.
        decided: whether a branch before or this one is the one that counts.
        written: whether a condition that only the compiler knows was kept.
    """

    outer: bool
    live: bool = False
    decided: bool = False
    written: bool = False


class _Resolver:
    """A preprocessor that leaves what it does not know: the architecture, macros in code."""

    def __init__(self, macros: dict[str, str]) -> None:
        self._macros = macros

    def lines(self, source: str) -> Iterator[str]:
        """The lines of a file, with its headers inserted and branches that are known left out."""
        frames: list[_Condition] = []
        for line in (FOLDER / source).read_text(encoding="utf-8").splitlines():
            found = _DIRECTIVE.match(line)
            live = all(frame.live for frame in frames)
            word, rest = found.groups() if found else ("", "")
            if word.startswith("if"):
                frames.append(_Condition(live))
            if word in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
                yield from self._branch(frames, word, rest)
            elif live and word == "include":
                header = rest.strip('"')
                yield f"\n// ---- {header} ----"
                yield from self.lines(header)
                yield f"\n// ---- {source} ----"
            elif live:
                name, *value = rest.split("//")[0].split(maxsplit=1)[:2] if word == "define" else ("",)
                if name and "(" not in name:
                    self._macros[name] = value[0] if value else "1"
                yield line

    def _branch(self, frames: list[_Condition], word: str, rest: str) -> Iterator[str]:
        """The directive that is left of an #if, #elif, #else or #endif."""
        frame, condition = frames[-1], rest.split("//")[0].strip()
        if word == "endif":
            frames.pop()
            if frame.written:
                yield "#endif"
            return
        if not frame.outer or frame.decided:
            frame.live = False
            return
        known = True if word == "else" else self._value(word, condition)
        frame.live, frame.decided = known is not False, known is True
        if known is None:
            yield f"#{'elif' if frame.written else 'if'} {condition}"
            frame.written = True
        elif known and frame.written:
            yield "#else"

    def _value(self, word: str, condition: str) -> bool | None:
        """Whether a condition holds; None if only the compiler knows."""
        if word in ("ifdef", "ifndef"):
            return (condition in self._macros) == (word == "ifdef")
        text = condition.replace(f"defined({_ARCHITECTURE})", "1")
        while (name := _NAME.search(text)) is not None and name[0] != _ARCHITECTURE:
            text = text.replace(name[0], f"({self._macros.get(name[0], '0')})")
        if _ARCHITECTURE in text:
            return None
        python = text.replace("&&", " and ").replace("||", " or ")
        return bool(eval(re.sub(r"!(?!=)", " not ", python), {"__builtins__": {}}))


def _without_idle_macros(text: str) -> str:
    """A text without the macros of one line, except those with arguments, that no other line uses."""
    while True:
        code = re.sub(r"//.*", "", text)
        for define in re.finditer(r"^#define (\w+)(?= |$).*\n", text, re.MULTILINE):
            if len(re.findall(rf"\b{define[1]}\b", code)) == 1 and not define[0].endswith("\\\n"):
                text = text.replace(define[0], "", 1)
                break
        else:
            return text
