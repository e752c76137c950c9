"""Where a run's model is, and what is read of it and written there."""

import json
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trainjob.errors import StorageError, UserError
from trainjob.runs.checkpoints import MANIFEST, files_of
from trainjob.runs.digests import DIGESTS, digests_of, first_changed, read_digests, write_digests
from trainjob.runs.files import CHECKPOINTS, EVALUATION, MODEL, SUMMARY, TRAINJOB, VARIANTS
from trainjob.runs.parts import PROGRESS, RANKS, STATE, Parts
from trainjob.runs.refusals import not_a_run
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder

PREPROCESSOR, LANGUAGE_MODEL = "preprocessor.json", "continuation"
"""The file that tells the kind of a model, and what it calls a language model."""
WEIGHTS = "model.safetensors"
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
"""The files of an adapter, without the model that it is for."""


def model_folder(folder: Folder, variant: str | None = None) -> Folder:
    """The folder of the model that is meant by a run's, a model's, a variant's or a checkpoint's folder; with
    `variant`, of the smaller model of that name in a run's folder.

    Raises UserError where there is none.
    """
    if variant is not None:
        return _variant(folder, variant)
    for candidate in (folder / MODEL, folder):
        if candidate.exists("config.json") or candidate.exists(ADAPTER):
            return candidate
    if folder.exists(TRAINJOB):
        if folder.exists(SUMMARY):
            raise UserError(f"{folder.uri} holds no model of trainjob's, but what a function of one's own has saved")
        checkpoints = folder.list(CHECKPOINTS)
        other = f", or take its checkpoint {folder.uri}/checkpoints/{checkpoints[-1]}" if checkpoints else ""
        raise UserError(f"{folder.uri}: this run has not finished; continue it with `trainjob run`{other}")
    raise not_a_run(folder, f"{MODEL}/config.json (or config.json)")


def is_language_model(model: Folder) -> bool:
    """Whether a model's folder holds one. Raises UserError where the file that tells is damaged."""
    if not model.exists(PREPROCESSOR):
        return False
    try:
        return json.loads(model.read(PREPROCESSOR))["kind"] == LANGUAGE_MODEL
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{model.uri}/{PREPROCESSOR} is damaged: {type(error).__name__}: {error}") from error


@contextmanager
def on_this_machine(model: Folder) -> Generator[Path]:
    """A model's folder; of one that is elsewhere, and of a checkpoint, a copy for the time of the block.

    Raises StorageError where a file is not the one that was saved, by its digest.
    """
    is_checkpoint = model.exists(MANIFEST)
    if "://" not in model.uri and not is_checkpoint:
        _check(model, read_digests(model), DIGESTS)
        yield Path(model.uri)
        return
    with scratch_folder() as copy:
        try:
            if is_checkpoint:
                _make_model(model, _checked_files(model), copy)
            else:
                _download(model, copy)
            yield copy
        except UserError as error:  # is told of the folder that the user knows
            raise type(error)(str(error).replace(str(copy), model.uri)) from error


def save_as_model(checkpoint: Folder, files: Collection[str], model: Folder) -> None:
    """Makes the model of a checkpoint, whose weights lie in parts, one in the folder `model`. `files` are the
    checkpoint's, which have just been found whole."""
    with scratch_folder() as copy:
        _make_model(checkpoint, files, copy)
        write_model(copy, model)


def write_model(local: Path, model: Folder) -> None:
    """Copies a model's files into the folder `model`: their digests come first, so that a part of them is not taken for
    a whole model, and `config.json` comes last, so that it is taken for none."""
    write_digests(model, digests_of(local))
    for file in sorted(local.iterdir(), key=lambda file: file.name == "config.json"):
        model.upload(file, file.name)


def _download(model: Folder, copy: Path) -> None:
    for name in model.list():
        model.download(name, copy / name)
    downloaded = Folder(str(copy))
    _check(downloaded, read_digests(downloaded), DIGESTS)


def _make_model(checkpoint: Folder, files: Collection[str], copy: Path) -> None:
    """Makes the files of a checkpoint's model."""
    for name in checkpoint.list():
        if name in files and _is_of_model(name):
            checkpoint.download(name, copy / name)
    if any(name.startswith(f"{STATE}/") for name in files):
        Parts(checkpoint, files).export(copy / (ADAPTER_WEIGHTS if (copy / ADAPTER).exists() else WEIGHTS))


def _checked_files(checkpoint: Folder) -> dict[str, str]:
    """A checkpoint's files, of which those that make its model are compared with their digests."""
    files = files_of(checkpoint)
    _check(checkpoint, {name: digest for name, digest in files.items() if _is_of_model(name)}, MANIFEST)
    return files


def _is_of_model(name: str) -> bool:
    """Whether a file of a checkpoint is needed for its model, rather than to train on."""
    return name.partition("/")[0] not in (RANKS, PROGRESS, EVALUATION)


def _check(folder: Folder, digests: Mapping[str, str], listed: str) -> None:
    name = first_changed(folder, digests)
    if name is None:
        return
    own = "take another checkpoint" if listed == MANIFEST else f"remove {listed} if you have changed the model yourself"
    raise StorageError(
        f"{folder.uri}: {name} is missing, or is not the file that was saved, whose SHA-256 is in {listed}: copy the "
        f"folder again, or {own}"
    )


def run_folder_of(folder: Folder) -> Folder:
    """The run's folder that is meant by it or by that of one of its variants."""
    parent, _, name = folder.uri.rstrip("/").rpartition("/")
    run, _, last = parent.rpartition("/")
    return Folder(run, folder.endpoint) if name and last == VARIANTS and run else folder


def variants_of(run: Folder) -> list[str]:
    """The names of those that are complete."""
    return [name for name in run.list(VARIANTS) if (run / VARIANTS / name).exists("config.json")]


def _variant(run: Folder, name: str) -> Folder:
    names = variants_of(run)
    if name in names:
        return run / VARIANTS / name
    if not names:
        raise UserError(f"{run.uri} has no variants: make some with `trainjob compress {run.uri} --int8`")
    raise UserError(f"{run.uri} has no variant {name}; it has {', '.join(names)}")
