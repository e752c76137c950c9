"""The chart as it was before it was last changed."""

import io
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHART = "charts/trainjob"


def checkout_before(folder: Path) -> Path:
    """Returns a checkout of the last commit with another chart, in `folder`; this checkout if there is no such
    commit."""

    def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, timeout=60)

    for commit in git("log", "--format=%H", "--", CHART).stdout.decode().split():
        archive = git("archive", commit, CHART)
        if archive.returncode == 0 and git("diff", "--quiet", commit, "--", CHART).returncode == 1:
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
                files.extractall(folder, filter="data")
            return folder
    return ROOT
