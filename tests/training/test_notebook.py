"""The notebook of the examples."""

import shutil
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"


def outputs(notebook: Any, source: str) -> list[Any]:
    """The outputs of the cell that begins with `source`."""
    [cell] = [cell for cell in notebook.cells if cell.source.startswith(source)]
    return cell.outputs


def test_the_notebook_trains_and_shows_its_progress(tmp_path: Path):
    notebook: Any = nbformat.read(EXAMPLES / "quickstart.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    shutil.copy(EXAMPLES / "make_digits.py", tmp_path)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output.data["text/html"] for output in outputs(notebook, "run = ") if output.output_type == "display_data"]
    [last] = shown  # replaced in place
    assert last.startswith("<b>digits</b> on this machine<br>Finished<br>")
    assert '<progress max="100" value="100"></progress> 100%' in last
    assert "test_accuracy 0.9" in last
    [table] = outputs(notebook, "metrics = ")
    assert table.data["text/plain"].count("\n") >= 10
    [plot] = outputs(notebook, "epochs[[")
    assert "image/png" in plot.data
    predicted = outputs(notebook, "from sklearn")[-1]  # after a warning of tqdm's
    assert "labels:    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]" in predicted.text
    assert (tmp_path / "runs" / "digits" / "report.html").exists()
