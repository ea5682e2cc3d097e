"""Animations of a run's fields: GIF, which needs nothing else, or MP4, which needs ffmpeg."""

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from heatsim.errors import FolderError, InputError, StorageError
from heatsim.render.choice import MATERIAL, PictureChoice
from heatsim.render.opengl import finish_trial, start_trial
from heatsim.render.page.figure import import_matplotlib
from heatsim.render.spatial.field_pictures import frames_of
from heatsim.render.spatial.fields import Fields
from heatsim.render.spatial.quantities import open_reader
from heatsim.storage import folder as run_folder
from heatsim.storage import manifest
from heatsim.storage.disk import make_folders, reason, resume_command
from heatsim.storage.run_settings import RunSettings, read_settings

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("gif", "mp4")
_MOST_FRAMES = 240
_SECONDS = 8.0  # that an animation lasts at least, unless frames would stand still for too long
_SLOWEST, _FASTEST = 2.0, 25.0  # frames per second
_GIF_WIDTH = 1000  # pixels; a GIF of the whole picture would be large
_COLOURS = 255


def animate(folder: Path, choice: PictureChoice) -> Path:
    """Write an animation of one view over all times, or over those of ``choice``, into ``folder/figures``.

    All frames share a colour scale. The view is the first that was chosen, or the first of the usual ones.

    Args:
        folder: the output folder of a run.
        choice: what to draw; its format is "gif" or "mp4".

    Returns:
        The path of the animation.

    Raises:
        FolderError: heatsim did not write the folder, it has fewer than two fields, or the user changed the animation.
        InputError: the view cannot be drawn on this machine, or ffmpeg is missing.
        StorageError: a file cannot be read or written.
    """
    import_matplotlib()
    run_folder.require_run(folder)
    run = read_settings(folder)
    encoder = find_ffmpeg() if choice.format == "mp4" else ""
    with ExitStack() as stack:
        reader = stack.enter_context(open_reader(folder / run_folder.FIELDS, choice.quantity, run, choice.cells))
        if len(reader) < 2 or choice.quantity == MATERIAL:
            raise FolderError(f"{folder}: {_why_still(folder, run, choice.quantity, len(reader))}")
        fields = Fields(reader, run, choice)
        if choice.span is None and not fields.common.uniform:
            lows, highs = zip(*fields.ranges, strict=True)
            fields = Fields(reader, run, replace(choice, span=(min(lows), max(highs))))
        times = fields.chosen if choice.times else _spread(len(reader))
        name, frames, in_space = frames_of(fields, times, stack)
        path = folder / run_folder.FIGURES / f"{choice.prefix}{name}.{choice.format}"
        manifest.refuse(folder, stack.enter_context(manifest.replacing(folder, [f"{run_folder.FIGURES}/{path.name}"])))
        if in_space:
            finish_trial(stack.enter_context(start_trial()))
        drawn = Path(stack.enter_context(TemporaryDirectory()))
        for number, frame in enumerate(frames):
            frame.draw(drawn / f"{number:04d}.png")
        make_folders(path.parent)
        _write(path, sorted(drawn.iterdir()), _speed(len(frames)), encoder)
    return path


def find_ffmpeg() -> str:
    """The path of ffmpeg: that of the package imageio-ffmpeg, or that of the system.

    Raises:
        InputError: there is none.
    """
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return str(get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        found = shutil.which("ffmpeg")
    if found is None:
        raise InputError(
            'MP4 needs ffmpeg, which is not there; install it with `python -m pip install "heatsim[video]"`, or write '
            "a GIF with --format gif"
        )
    return found


def _spread(count: int) -> Sequence[int]:
    return [int(index) for index in np.unique(np.linspace(0, count - 1, min(count, _MOST_FRAMES)).round())]


def _speed(frames: int) -> float:
    """Frames per second."""
    return min(max(frames / _SECONDS, _SLOWEST), _FASTEST)


def _write(path: Path, frames: Sequence[Path], speed: float, encoder: str) -> None:
    if encoder:
        _write_mp4(path, frames, speed, encoder)
    else:
        _write_gif(path, frames, speed)


def _write_gif(path: Path, frames: Sequence[Path], speed: float) -> None:
    from PIL import Image

    images = []
    palette = None
    for frame in frames:
        with Image.open(frame) as opened:
            image = opened.convert("RGB")
        image = image.resize((_GIF_WIDTH, round(image.height * _GIF_WIDTH / image.width)), Image.Resampling.BOX)
        if palette is None:
            palette = _common_palette(frames)
        images.append(image.quantize(palette=palette, dither=Image.Dither.NONE))
    try:
        images[0].save(
            path, save_all=True, append_images=images[1:], duration=round(1000.0 / speed), loop=0, optimize=False
        )
    except OSError as error:
        raise StorageError(f"{path}: could not be written: {reason(error)}") from error


def _common_palette(frames: Sequence[Path]) -> "Image.Image":
    """An image with the colours of a few frames, so that colours do not flicker."""
    from PIL import Image

    some = [frames[index] for index in sorted({0, len(frames) // 3, 2 * len(frames) // 3, len(frames) - 1})]
    parts = []
    for frame in some:
        with Image.open(frame) as opened:
            parts.append(opened.convert("RGB").resize((400, 300), Image.Resampling.NEAREST))
    joined = Image.new("RGB", (400, 300 * len(parts)))
    for number, part in enumerate(parts):
        joined.paste(part, (0, 300 * number))
    palette = joined.quantize(colors=_COLOURS, method=Image.Quantize.MEDIANCUT)
    colours = palette.getpalette() or []
    # The page is white, and stays so.
    lightest = max(range(0, len(colours), 3), key=lambda first: sum(colours[first : first + 3]))
    colours[lightest : lightest + 3] = [255, 255, 255]
    palette.putpalette(colours)
    return palette


def _write_mp4(path: Path, frames: Sequence[Path], speed: float, encoder: str) -> None:
    pattern = frames[0].with_name("%04d.png")
    command = [encoder, "-y", "-loglevel", "error", "-framerate", f"{speed:g}", "-i", str(pattern)]
    # The most common pixel format halves colours, so both sides must be even.
    command += ["-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2", "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(path)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise StorageError(f"{path}: ffmpeg could not be started: {reason(error)}") from error
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise StorageError(f"{path}: could not be written by {encoder}: {last[0]}; try --format gif")


def _why_still(folder: Path, run: RunSettings, quantity: str, count: int) -> str:
    """Why there is no animation, and what to do."""
    if run.steady:
        return "is a steady state, which has one time; draw it without --animate"
    if quantity == MATERIAL:
        return "its materials are the same at all times; draw them without --animate"
    return (
        f"has {count} field{'s' * (count != 1)}; an animation needs two: run with a shorter output.every, or continue "
        f"with `{resume_command(folder)}`"
    )
