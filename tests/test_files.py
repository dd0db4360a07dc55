"""A file is written whole or not at all."""

import pytest

from fishpool.files import replacing


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
    with pytest.raises(KeyboardInterrupt), replacing(file) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_what_a_killed_writer_left_is_removed(tmp_path):
    file, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl.1.part"
    (tmp_path / "a.jsonl.1.part").write_text("half")
    other.write_text("of another file")
    with replacing(file) as part:
        part.write_text("new")
    assert sorted(tmp_path.iterdir()) == [file, other]
