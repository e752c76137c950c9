"""Finds, checks, copies and writes the model in a run's folder."""

import json
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trainjob.errors import StorageError, UserError
from trainjob.kinds import KINDS, saved_kind
from trainjob.runs.checkpoints import MANIFEST, STATE, CheckpointTensors, belongs_to_model, files_of
from trainjob.runs.digests import DIGESTS, digests_of, first_changed, read_digests, write_digests
from trainjob.runs.files import CHECKPOINTS, MODEL, SUMMARY, TRAINJOB, VARIANTS
from trainjob.runs.refusals import not_a_run, refuse_damaged
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder

PREPROCESSOR = "preprocessor.json"
"""The file that names the kind of a model."""
WEIGHTS = "model.safetensors"
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
"""The files of an adapter, which do not include its base model."""


def model_folder(folder: Folder, variant: str | None = None) -> Folder:
    """Finds the model in the folder of a run, a model, a variant or a checkpoint.

    With `variant`, `folder` is a run's folder and the result is the folder of that smaller variant of its model.
    Raises UserError if there is no model.
    """
    if variant is not None:
        return _variant(folder, variant)
    for candidate in (folder / MODEL, folder):
        if candidate.exists("config.json") or candidate.exists(ADAPTER):
            return candidate
    if folder.exists(TRAINJOB):
        if folder.exists(SUMMARY):
            raise UserError(
                f"{folder.uri} has no trainjob model: a function trained it and saved its own files; "
                "`trainjob pull --what all` copies them"
            )
        checkpoints = folder.list(CHECKPOINTS)
        other = f", or use its checkpoint {folder.uri}/checkpoints/{checkpoints[-1]}" if checkpoints else ""
        how = "`trainjob run`"
        if "://" in folder.uri:
            how += " or, if it is of a suspended TrainJob, `trainjob resume`"
        raise UserError(f"{folder.uri}: this run has not finished; continue it with {how}{other}")
    raise not_a_run(folder, f"{MODEL}/config.json (or config.json)")


def is_language_model(model: Folder) -> bool:
    """Whether the model in a folder is a language model. Raises UserError if its PREPROCESSOR file is damaged."""
    if not model.exists(PREPROCESSOR):
        return False
    with refuse_damaged(model, PREPROCESSOR):
        kind = saved_kind(json.loads(model.read(PREPROCESSOR))["kind"])
    return "generation" in KINDS[kind].abilities


@contextmanager
def local_copy(model: Folder) -> Generator[Path]:
    """A local folder with the model: the folder itself, or a temporary copy if it is remote or a checkpoint's.

    Raises StorageError if a file's digest differs from that of the saved file.
    """
    is_checkpoint = model.exists(MANIFEST)
    if "://" not in model.uri and not is_checkpoint:
        _check_digests(model, read_digests(model), DIGESTS)
        yield Path(model.uri)
        return
    with scratch_folder() as copy:
        try:
            if is_checkpoint:
                _assemble_model(model, _verify_files(model), copy)
            else:
                _download(model, copy)
            yield copy
        except UserError as error:  # name the original folder, which the user knows, instead of the copy
            raise type(error)(str(error).replace(str(copy), model.uri)) from error


def save_as_model(checkpoint: Folder, files: Collection[str], model: Folder) -> None:
    """Assembles the model of a checkpoint from the ranks' tensor files and writes it to the folder `model`.

    `files` are the names of the checkpoint's files, which the caller has verified."""
    with scratch_folder() as copy:
        _assemble_model(checkpoint, files, copy)
        write_model(copy, model)


def write_model(local: Path, model: Folder) -> None:
    """Copies a model's files into the folder `model`.

    Writes the digests first, so that missing files are noticed, and `config.json` last: without it, the folder is not
    a model's."""
    write_digests(model, digests_of(local))
    for file in sorted(local.iterdir(), key=lambda file: file.name == "config.json"):
        model.upload(file, file.name)


def write_variant(local: Path, run: Folder, name: str) -> None:
    """Copies a model into the run's folder as a variant. config.json is deleted first and written last, because a
    folder without it does not count as a variant."""
    target = run / VARIANTS / name
    target.delete("config.json")
    (run / VARIANTS).delete(name)
    write_model(local, target)


def _download(model: Folder, copy: Path) -> None:
    for name in model.list():
        model.download(name, copy / name)
    downloaded = Folder(str(copy))
    _check_digests(downloaded, read_digests(downloaded), DIGESTS)


def _assemble_model(checkpoint: Folder, files: Collection[str], copy: Path) -> None:
    """Assembles the model of a checkpoint in the local folder `copy`."""
    for name in filter(belongs_to_model, files):
        if not name.startswith(f"{STATE}/"):
            checkpoint.download(name, copy / name)
    if any(name.startswith(f"{STATE}/") for name in files):
        CheckpointTensors(checkpoint, files).export(copy / (ADAPTER_WEIGHTS if (copy / ADAPTER).exists() else WEIGHTS))


def _verify_files(checkpoint: Folder) -> dict[str, str]:
    """A checkpoint's files and their digests. Raises StorageError if a file of its model does not match its digest."""
    files = files_of(checkpoint)
    _check_digests(checkpoint, {name: digest for name, digest in files.items() if belongs_to_model(name)}, MANIFEST)
    return files


def _check_digests(folder: Folder, digests: Mapping[str, str], manifest: str) -> None:
    name = first_changed(folder, digests)
    if name is None:
        return
    if manifest == MANIFEST:
        remedy = "use another checkpoint"
    else:
        remedy = f"remove {manifest} if you have changed the model yourself"
    raise StorageError(
        f"{folder.uri}: {name} is missing, or is not the saved file, whose SHA-256 is in {manifest}: copy the "
        f"folder again, or {remedy}"
    )


def run_folder_of(folder: Folder) -> Folder:
    """The run's folder, given that folder or the folder of one of its variants."""
    parent, _, name = folder.uri.rstrip("/").rpartition("/")
    run, _, last = parent.rpartition("/")
    return Folder(run, folder.endpoint) if name and last == VARIANTS and run else folder


def variants_of(run: Folder) -> list[str]:
    """The names of the run's complete variants."""
    return [name for name in run.list(VARIANTS) if (run / VARIANTS / name).exists("config.json")]


def _variant(run: Folder, name: str) -> Folder:
    names = variants_of(run)
    if name in names:
        return run / VARIANTS / name
    if not names:
        raise UserError(
            f"{run.uri} has no variants: if its kind of model allows it, `trainjob compress {run.uri} --int8` makes "
            f"smaller models, and `trainjob baseline {run.uri}` keeps the baselines tfidf, linear and lightgbm"
        )
    raise UserError(f"{run.uri} has no variant {name}; it has {', '.join(names)}")
