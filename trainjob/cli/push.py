"""`trainjob push`"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.named_run import RunName, named_run
from trainjob.errors import TransientError, UserError

TOKEN = "HF_TOKEN"


def push(
    run: RunName,
    repository: Annotated[str, typer.Argument(metavar="REPOSITORY", help="OWNER/NAME on the hub.", show_default=False)],
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Upload a run's model and its card to the Hugging Face hub.

    A repository that does not exist is created, for you alone to see. The token, with the right to write, comes from
    the environment, HF_TOKEN; another hub's address from HF_ENDPOINT.
    """
    from trainjob.runs.model import local_copy, model_folder

    token = os.environ.get(TOKEN, "").strip()
    if not token:
        raise UserError(f"set {TOKEN} to a token with write access, from https://huggingface.co/settings/tokens")
    with local_copy(model_folder(named_run(run, context, namespace))) as folder:
        print(_upload(folder, repository, token))


def _upload(folder: Path, repository: str, token: str) -> str:
    """Uploads a model's files in one commit, and returns the repository's address."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    api = HfApi(token=token)
    with _hub_errors(api.endpoint, repository):
        url = api.create_repo(repository, private=True, exist_ok=True)
        api.upload_folder(
            repo_id=url.repo_id,
            folder_path=folder,
            commit_message="Upload a model trained by trainjob",
            ignore_patterns="*.pt",  # the state of a checkpoint's training
        )
    return str(url)


@contextmanager
def _hub_errors(endpoint: str, repository: str) -> Generator[None]:
    """Converts errors of the hub's client into a UserError."""
    from httpx2 import HTTPError
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    try:
        yield
    except HFValidationError as error:
        raise UserError(f"{repository} is not a valid name of a repository: {error}") from None
    except OfflineModeIsEnabled:
        raise UserError("HF_HUB_OFFLINE is set: unset it to upload") from None
    except HfHubHTTPError as error:
        status, message = error.response.status_code, " ".join((error.server_message or str(error)).split())[:300]
        if status >= 500 or status == 429:
            raise TransientError(f"{endpoint} answers {status}: try again later ({message})") from None
        remedy = {
            401: f"the token in {TOKEN} is not valid: make a new one",
            403: f"the token in {TOKEN} has no write access to {repository}: grant it, or use another owner",
            404: f"there is no owner {repository.partition('/')[0]}, or the token in {TOKEN} has no access to it",
        }.get(status, f"{repository} is refused")
        raise UserError(f"{endpoint} answers {status}: {remedy} ({message})") from None
    except (ValueError, KeyError) as error:
        raise UserError(f"{endpoint} does not answer like a Hugging Face hub ({error}): correct HF_ENDPOINT") from None
    except (HTTPError, OSError) as error:
        raise TransientError(f"{endpoint} cannot be reached: {' '.join(str(error).split())[:300]}") from None
