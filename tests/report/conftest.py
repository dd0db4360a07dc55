"""One small study with its figures, played once for all tests of the report."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import study_in_a_database as study

from fishpool.report import page


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """`database`, `figures` and the finished `page` of a study of all three games."""
    folder: Path = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        frames = study.played(patch)
    database = study.collected(frames, folder / "fishpool.duckdb")
    study.drawn(database, folder / "figures")
    page.build(database, folder / "figures", study.ASKED, folder / "report.html")
    return SimpleNamespace(
        database=database, figures=folder / "figures", page=folder / "report.html", asked=study.ASKED
    )
