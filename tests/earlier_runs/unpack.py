"""Unpacks the runs that earlier versions of trainjob wrote."""

import tarfile
from pathlib import Path

from earlier_runs.make import ROOT

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))


def unpacked(archive: Path, folder: Path) -> Path:
    """`folder`, in which the runs are then."""
    with tarfile.open(archive) as found:
        found.extractall(folder, filter="data")
    for file in folder.glob("runs/*/trainjob.yaml"):
        file.write_text(file.read_text().replace(ROOT, str(folder)))
    return folder
