"""`trainjob merge`"""

from typing import Annotated

import typer

from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.named_run import RunName, named_run
from trainjob.cli.output import say
from trainjob.errors import UserError


def merge(
    run: RunName,
    output: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A new folder: a path, s3:// or gs://.", show_default=False)
    ],
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Add a trained adapter (LoRA) to its model, and write that."""
    from trainjob.kinds.causal_lm import lora
    from trainjob.models import load_language_model, save_model
    from trainjob.runs.model import local_copy, model_folder, write_model
    from trainjob.scratch import scratch_folder
    from trainjob.storage import Folder

    target = Folder(output)
    if target.list():
        raise UserError(f"{output} is not empty: give a new folder")
    with local_copy(model_folder(named_run(run, context, namespace))) as folder:
        model, preprocessor = load_language_model(folder)
    if not lora.has_adapter(model.network):
        raise UserError(f"{run} has a complete model: there is no adapter to merge")
    lora.merge(model.network)
    with scratch_folder() as whole:
        save_model(model, preprocessor, whole)
        write_model(whole, target)
    say(f"the merged model is in {output}")
