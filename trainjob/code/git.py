"""Fetches one commit of a Git repository."""

import base64
import os
import re
import subprocess
import tempfile
from pathlib import Path

from trainjob.api.code import GIT_PASSWORD, GIT_USERNAME, Git
from trainjob.errors import TransientError, UserError

ANSWER_SECONDS, FETCH_SECONDS = 20.0, 900.0
_TRANSIENT = re.compile(
    r"Could not resolve|Failed to connect|timed out|unable to access.*(error: 5\d\d|SSL)|hung up|RPC"
)
_REMEDIES = {
    r"Authentication failed|could not read Username|HTTP 40[13]|error: 40[13]": (
        "access is refused: check the user and the token in the Secret of spec.code.git.secretName (on a laptop, "
        f"{GIT_USERNAME} and {GIT_PASSWORD})"
    ),
    r"couldn't find remote ref|not our ref|Server does not allow request for unadvertised object": (
        "spec.code.git.ref: the repository has no such branch, tag or full commit hash"
    ),
    r"[Nn]ot a valid object name|did not match any file": "spec.code.git.path: the commit has no such folder",
    r"not found": "spec.code.git.url: there is no such repository, or it needs spec.code.git.secretName",
}


def fetch(source: Git) -> tuple[bytes, str]:
    """The files of a commit, or those in its folder `path`, as a `.tar.gz` archive; and the commit's hash.

    Raises UserError if they do not exist or access is refused, and TransientError if the server does not answer.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = _credentials(source)
        git("init", "--quiet", "--bare", ".", folder=folder)
        git("ls-remote", "--quiet", source.url, "HEAD", folder=folder, environment=environment, seconds=ANSWER_SECONDS)
        git("fetch", "--quiet", "--depth=1", source.url, source.ref, folder=folder, environment=environment)
        commit = git("rev-parse", "FETCH_HEAD^{commit}", folder=folder).decode().strip()
        tree = f"{commit}:{source.path}" if source.path is not None else commit
        return git("archive", "--format=tar.gz", tree, folder=folder), commit


def git(
    *arguments: str,
    folder: Path,
    environment: dict[str, str] | None = None,
    seconds: float = FETCH_SECONDS,
    check: bool = True,
) -> bytes:
    """The output of a Git command in `folder`. Raises UserError if Git is missing and, with `check`, if the command
    fails; TransientError after `seconds`."""
    stalled = {"GIT_HTTP_LOW_SPEED_LIMIT": "1000", "GIT_HTTP_LOW_SPEED_TIME": "20"}
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=os.environ | stalled | quiet | (environment or {}),
            capture_output=True,
            timeout=seconds,
        )
    except FileNotFoundError:
        raise UserError("git is not installed here: install it") from None
    except subprocess.TimeoutExpired:  # of a command on the network, whose last argument but one is the URL
        raise TransientError(f"git {arguments[0]} got no answer within {seconds:.0f} s: {arguments[-2]}") from None
    if check and done.returncode:
        raise _error(done.stderr.decode(errors="replace").strip())
    return done.stdout


def _credentials(source: Git) -> dict[str, str]:
    """Git's settings with the credentials, as environment variables: every user can read a process's arguments."""
    password = os.environ.get(GIT_PASSWORD)
    if password is None:
        return {}
    login = base64.b64encode(f"{os.environ.get(GIT_USERNAME, 'git')}:{password}".encode()).decode()
    server = re.match(r"https?://[^/]+/", f"{source.url}/")
    assert server is not None, "the field's pattern allows no other URLs"
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{server[0]}.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {login}",
    }


def _error(output: str) -> UserError:
    last = "\n".join(output.splitlines()[-5:])
    if _TRANSIENT.search(output):
        return TransientError(f"spec.code.git.url: the server does not answer:\n{last}")
    for pattern, remedy in _REMEDIES.items():
        if re.search(pattern, output):
            return UserError(f"{remedy}:\n{last}")
    return UserError(f"git failed:\n{last}")
