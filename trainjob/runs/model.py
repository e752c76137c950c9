"""Where a run's model is."""

from trainjob.errors import UserError
from trainjob.runs.files import CHECKPOINTS, MODEL, SUMMARY, TRAINJOB
from trainjob.storage import Folder


def model_folder(folder: Folder) -> Folder:
    """The folder of the model that is meant by a run's, a model's or a checkpoint's folder.

    Raises UserError where there is none.
    """
    for candidate in (folder / MODEL, folder):
        if candidate.exists("config.json"):
            return candidate
    if folder.exists(TRAINJOB):
        if folder.exists(SUMMARY):
            raise UserError(f"{folder.uri} holds no classifier, but what a function of one's own has saved")
        checkpoints = folder.list(CHECKPOINTS)
        other = f", or take its checkpoint {folder.uri}/checkpoints/{checkpoints[-1]}" if checkpoints else ""
        raise UserError(f"{folder.uri}: this run has not finished; continue it with `trainjob run`{other}")
    found = ", ".join(folder.list()[:10]) or "nothing"
    raise UserError(f"{folder.uri} is no run: expected model/config.json (or config.json) there, found {found}")
