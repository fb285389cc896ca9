"""Every notebook runs from the first cell to the last in a fresh kernel."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


# A thousand simulated calls take as long as the other notebooks together.
RUN = [
    pytest.param(path, marks=pytest.mark.long if path.stem == "metrics" else ())
    for path in NOTEBOOKS
]


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
@pytest.mark.slow
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    """A notebook ends without an error and shows at least one plot."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    (tmp_path / "work").mkdir()
    notebook = nbformat.read(path, as_version=4)

    NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=120,
        resources={"metadata": {"path": str(tmp_path / "work")}},
    ).execute()

    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_keeps_its_outputs(path):
    """Whoever reads it on the web sees its plots, and no error; `make notebooks` writes them."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {
        "stream",
        "display_data",
        "execute_result",
    }
    assert {output.name for output in outputs if output.output_type == "stream"} == {"stdout"}
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert path.stat().st_size < 400_000
