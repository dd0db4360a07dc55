"""A dictator study in the config: its conditions, its files, and the sentences for documents and decisions."""

from pathlib import Path

import pytest

from fishpool import study
from fishpool.study import ConfigError

NINE = Path(__file__).parents[1] / "config" / "strategies"


def load(folder, **keys):
    given = {"game": "dictator", "strategies": str(folder), "oracles": ["formal"]} | keys
    (one,) = study.load({"studies": {"t": given}}).studies
    return one


def faults(folder, **keys):
    with pytest.raises(ConfigError) as caught:
        load(folder, **keys)
    return caught.value.faults


@pytest.fixture
def pool(tmp_path):
    folder = tmp_path / "pool"
    folder.mkdir()
    for name, rule in (("ada", "mirror"), ("bob", "always_take")):
        (folder / f"{name}.md").write_text(f"---\nname: {name}\nfamily: test\nrule: {rule}\n---\nI am {name}.\n")
    return folder


def decisions(folder, text):
    path = folder.parent / "mine.csv"
    path.write_text("dictator,recipient,decision\n" + text)
    return {"decisions": str(path)}


ALL = "ada,ada,SHARE\nada,bob,TAKE\nbob,ada,TAKE\nbob,bob,TAKE\n"


def test_the_default_study_is_the_published_tournament():
    (one,) = (each for each in study.load_files([]).studies if each.game == "dictator")
    assert one.name == "tournament9"
    assert [condition.name for condition in one.conditions] == ["published", "formal", "formal_least", "gemma3-270m"]
    assert one.analysis["betas"] == [1, 5, 20]
    assert sum(len(one.shards(condition)) for condition in one.conditions) == 4


def test_an_oracle_is_a_condition_that_reads_the_documents_and_its_decisions(pool):
    one = load(pool, oracles=[decisions(pool, ALL)])
    (condition,) = one.conditions
    assert condition.name == "mine"
    assert [Path(file).name for file in condition.files] == ["ada.md", "bob.md", "mine.csv"]


def test_what_the_analysis_varies_plays_nothing_again(pool):
    one, other = load(pool), load(pool, starts=50, betas=[3])
    assert one.shards(one.conditions[0])[0].to_json() == other.shards(other.conditions[0])[0].to_json()


def test_every_faulty_document_gets_a_sentence_that_names_its_file(pool):
    (pool / "long.md").write_text("---\nname: long\nfamily: test\n---\n" + "word " * 1001)
    (pool / "none.md").write_bytes(b"")
    (pool / "raw.md").write_bytes(b"---\nname: raw\nfamily: test\n---\n\xff")
    (pool / "twin.md").write_text("---\nname: ada\nfamily: test\n---\nI too.\n")
    (pool / "bare.md").write_text("I share.\n")
    found = sorted(faults(pool))
    assert [Path(fault.split(":")[0]).name for fault in found] == ["bare.md", "long.md", "none.md", "raw.md", "twin.md"]
    for fault, says in zip(found, ("front matter is missing", "1001", "empty", "UTF-8", 'name "ada"'), strict=True):
        assert says in fault


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ALL.replace("ada,bob,TAKE\n", ""), 'the cell "ada" on "bob" is missing'),
        (ALL + "ada,ada,SHARE\n", '"ada" on "ada" has a row already'),
        (ALL + "eve,ada,SHARE\n", 'no document has the name "eve"'),
        (ALL + "eve,ada,SHARE\neve,bob,SHARE\n", "(and 1 more fault)"),
        (ALL + "eve,ada,SHARE\neve,bob,SHARE\neve,eve,SHARE\n", "(and 2 more faults)"),
    ],
)
def test_a_faulty_decision_file_gets_one_sentence(pool, text, says):
    (fault,) = faults(pool, oracles=[decisions(pool, text)])
    assert fault.startswith("--config: studies.t.oracles[0] cannot be asked: ")
    assert says in fault


def test_oracles_that_cannot_answer_for_the_pool(pool):
    assert 'has no decisions about "ada"' in faults(pool, oracles=["published"])[0]
    (pool / "ada.md").write_text("---\nname: ada\nfamily: test\n---\nI am ada.\n")
    assert "formal: ada declares no rule" in faults(pool)[0]
    entry = decisions(pool, ALL)
    assert "second oracle named mine" in faults(pool, oracles=[entry, entry | {"name": "mine"}])[0]


def test_a_document_alone_plays_itself_or_nobody(pool):
    (pool / "bob.md").unlink()
    assert load(pool).conditions
    [fault] = faults(pool, self_play=False)
    assert "studies.t.self_play is false with one strategy document, so that nobody would play" in fault


def test_a_folder_without_documents(tmp_path):
    assert "where no strategy document (*.md) is" in faults(tmp_path)[0]


def test_nothing_in_a_path_reaches_a_shell():
    assert "without spaces, quotes" in faults("$(touch x)")[0]
