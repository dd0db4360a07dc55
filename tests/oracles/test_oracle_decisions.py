"""Oracles that look answers up: the published table, and decision files good and bad."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishpool.games.dictator import Document, Votes, play
from fishpool.oracles.decisions import decisions_file, parse_decisions, published

POOL = ("ada", "bob")
DOCUMENTS = [Document(name, "test", "text") for name in POOL]
HEADER = "dictator,recipient,decision\n"
GOOD = HEADER + "ada,ada,SHARE\nada,bob,TAKE\nbob,ada,\nbob,bob,SHARE\n"


def test_an_empty_decision_is_a_missing_cell():
    tournament = play(DOCUMENTS, parse_decisions(GOOD.encode(), "file.csv", POOL))
    assert tournament.replicates.tolist() == [[1, 1], [0, 1]]
    assert tournament.share_votes.tolist() == [[1, 0], [0, 1]]


def test_votes_are_kept(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("dictator,recipient,decision,share_votes,replicates\nada,ada,TAKE,1,5\n")
    assert decisions_file(path, ["ada"])(DOCUMENTS[0], DOCUMENTS[0]) == Votes(1, 5)


def test_five_published_cells_have_one_dissenter_each():
    names = (
        "mirror cooperation-coalition chivalry conditional-cooperator anti-exploiter universalizability intelligence"
    )
    documents = [Document(name, "", "") for name in names.split()]
    oracle = published([document.name for document in documents])
    votes = [oracle(d, r) for d in documents for r in documents]
    assert {vote.replicates for vote in votes} == {3}
    assert sum(vote.share in (1, 2) for vote in votes) == 5


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (GOOD.replace("ada,bob,TAKE\n", ""), 'the cell "ada" on "bob" is missing'),
        (HEADER, 'the cell "ada" on "ada" and 3 more cells are missing'),
        (GOOD + "ada,ada,SHARE\n", 'line 6: "ada" on "ada" has a row already'),
        (GOOD + "eve,ada,SHARE\n", 'line 6: no document has the name "eve"'),
        (GOOD.replace("ada,bob,TAKE", "ada,bob,take"), 'line 3: decision is "take"'),
        (GOOD.replace("ada,bob,TAKE", "ada,bob"), "line 3: the row has not as many fields"),
        (GOOD.replace("ada,bob,TAKE", "ada,bob,TAKE,TAKE"), "line 3: the row has not as many fields"),
        (GOOD.replace("recipient", "other"), 'the columns are "dictator, other, decision"'),
        ("", "the columns are missing"),
    ],
)
def test_a_bad_decision_file_gets_one_sentence(content, says):
    with pytest.raises(ValueError, match=r"file\.csv") as fault:
        parse_decisions(content.encode(), "file.csv", POOL)
    assert says in str(fault.value)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    "votes",
    [
        "SHARE,1,3",
        "TAKE,1,2",
        "SHARE,3,2",
        ",1,3",
        "SHARE,a,b",
        "SHARE,-1,1",
        "SHARE,9999,9999",
        f"SHARE,{'9' * 5000},1",
    ],
)
def test_a_decision_is_the_majority_of_its_votes(votes):
    with pytest.raises(ValueError, match=r"line 2"):
        parse_decisions(
            f"dictator,recipient,decision,share_votes,replicates\nada,ada,{votes}\n".encode(), "f.csv", ["ada"]
        )


def test_not_utf_8():
    with pytest.raises(ValueError, match="not UTF-8"):
        parse_decisions(b"\xff", "file.csv", POOL)


def test_published_knows_its_nine_only():
    with pytest.raises(ValueError, match='published: has no decisions about "eve"'):
        published(["mirror", "eve"])


@given(st.one_of(st.binary(), st.text().map(lambda text: (HEADER + text).encode("utf-8", "replace"))))
def test_any_bytes_are_decisions_or_sentences(content):
    try:
        oracle = parse_decisions(content, "any.csv", POOL)
    except ValueError as error:
        faults = str(error).splitlines()
    else:
        faults = []
        assert play(DOCUMENTS, oracle).replicates.shape == (2, 2)
    assert all(fault.startswith("any.csv") for fault in faults)
