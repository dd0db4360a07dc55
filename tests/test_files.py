"""A file is written whole or not at all."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from fishpool.files import replacing

ROOT = Path(__file__).resolve().parents[1]


def test_the_file_appears_when_the_block_ends(tmp_path):
    file = tmp_path / "deep" / "file"
    with replacing(file) as part:
        part.write_text("new")
        assert not file.exists()
    assert file.read_text() == "new"
    assert list(file.parent.iterdir()) == [file]


def test_a_block_that_raises_leaves_the_old_file(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")

    def write_half():
        with replacing(file) as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_what_a_killed_writer_left_is_removed_with_what_its_library_put_beside_it(tmp_path):
    file = tmp_path / "a[1].duckdb"
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    left = tmp_path / f"{file.name}.{gone.pid}-0123abcd.part"
    left.write_text("half")
    left.with_name(f"{left.name}.wal").write_text("its log")
    left.with_name(f"{left.name}.tmp").mkdir()
    (left.with_name(f"{left.name}.tmp") / "spilt").write_text("rows")
    others = [tmp_path / "b.duckdb.1-0123abcd.part", tmp_path / f"{file.name}.of-mine.part"]
    for other in others:
        other.write_text("of somebody else")
    with replacing(file) as part:
        part.write_text("new")
    assert sorted(tmp_path.iterdir()) == sorted([file, *others])


def test_two_who_write_one_file_at_once_both_write_it_whole(tmp_path):
    """As a job does that outlived its killed workflow, and the one that replaces it."""
    file = tmp_path / "file"
    program = f"""
from pathlib import Path
from fishpool.files import replacing
with replacing(Path({str(file)!r})) as part:
    part.write_text("slow")
    print(flush=True)
    input()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, text=True, **pipes) as slow:
        slow.stdout.readline()
        with replacing(file) as part:
            part.write_text("quick")
        assert file.read_text() == "quick"
        slow.communicate("\n")
    assert slow.returncode == 0
    assert file.read_text() == "slow"
    assert list(tmp_path.iterdir()) == [file]


def test_of_two_machines_that_share_a_folder_neither_finishes_what_the_other_has_half_written(tmp_path):
    """Containers number their processes alike, so one takes the other's file for what is left of a killed one."""
    file = tmp_path / "file"
    with ExitStack() as others:

        def write_while_the_other_begins():
            with replacing(file) as one:
                one.write_text("of one")
                two.append(others.enter_context(replacing(file)))
                two[0].write_text("half of")

        two = []
        with pytest.raises(FileNotFoundError):
            write_while_the_other_begins()
        assert not file.exists()
        two[0].write_text("of two, whole")
    assert file.read_text() == "of two, whole"
