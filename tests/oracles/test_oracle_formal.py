"""The formal oracle: what follows from the rules, what is chosen, and how far it agrees with the published table."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishpool.analysis.agreement import agreement
from fishpool.documents import read_documents
from fishpool.games.dictator import Document, play
from fishpool.oracles.decisions import published
from fishpool.oracles.formal import Rule, formal, resolve

NINE = read_documents(Path(__file__).parents[2] / "config" / "strategies")
NAMES = [document.name for document in NINE]


def pool(*rules):
    return [Document(f"s{i}", "test", "", rule, kind=True) for i, rule in enumerate(rules)]


def test_agreement_with_the_published_table():
    table = play(NINE, published(NAMES)).decisions
    cooperative = play(NINE, formal(resolve(NINE))).decisions
    assert agreement(cooperative, table).agree == 80
    ((dictator, recipient),) = np.argwhere(cooperative != table)
    # One of the five cells that the paper's own oracles disagree about.
    assert (NAMES[dictator], NAMES[recipient]) == ("conditional-cooperator", "chivalry")


def test_the_cells_that_an_oracle_chooses_are_those_of_mutual_conditionality():
    resolution = resolve(NINE)
    regress = {"mirror", "conditional-cooperator", "universalizability"}
    chosen = {(NAMES[i], NAMES[j]) for i, j in np.argwhere(resolution.chosen)}
    assert chosen == {(a, b) for a in regress for b in regress}
    assert ((resolution.greatest != resolution.least) == resolution.chosen).all()


def test_mirrors_share_or_take_from_each_other():
    resolution = resolve(pool("mirror", "mirror"))
    assert resolution.chosen.all()
    assert resolution.greatest.all()
    assert not resolution.least.any()


def test_substituting_an_innocent_ends_the_regress_even_where_the_pool_has_none():
    resolution = resolve(pool("innocent", "mirror", "coalition", "always_take"))
    assert not resolution.chosen[0].any()
    assert list(resolution.greatest[0]) == [1, 1, 0, 0]


@given(st.lists(st.sampled_from(list(Rule)), min_size=1, max_size=6))
def test_both_answers_are_fixed_points_and_agree_where_nothing_is_chosen(rules):
    from fishpool.oracles.formal import _apply, _rules

    documents = pool(*rules)
    resolution = resolve(documents)
    for profile in (resolution.greatest, resolution.least):
        assert np.isin(profile, (0, 1)).all()
        assert (_apply(documents, _rules(documents), profile) == profile).all()
    assert (resolution.greatest == resolution.least)[~resolution.chosen].all()
    assert (resolution.greatest >= resolution.least).all()


def test_a_document_without_a_rule_gets_a_sentence():
    with pytest.raises(ValueError, match="formal: ada declares no rule"):
        resolve([Document("ada", "test", "")])
    with pytest.raises(ValueError, match='formal: ada declares the rule "whim"'):
        resolve([Document("ada", "test", "", "whim")])
    with pytest.raises(ValueError, match="formal: bob does not say whether it is kind"):
        resolve([Document("ada", "test", "", "kind", kind=True), Document("bob", "test", "", "mirror")])
