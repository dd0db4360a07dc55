"""Records that are not what their play wrote: a sentence that helps, and by its advice the same bytes.

The advice is followed to the letter: delete the file and run snakemake.
"""

import json
import re

import pytest
from workflow_checkout import contents

pytestmark = pytest.mark.workflow


def cut_in_a_line(text):
    return text[:-20]


def cut_at_a_line_end(text):
    return "".join(text.splitlines(keepends=True)[:-3])


def broken_json(text):
    return edit_line(text, 3, lambda line: line.replace(":", "", 1))


def emptied(text):
    return ""


def edited_record(**changes):
    return lambda text: edit_line(text, 5, lambda line: json.dumps(json.loads(line) | changes, separators=(",", ":")))


def edit_line(text, number, edit):
    lines = text.splitlines()
    lines[number - 1] = edit(lines[number - 1])
    return "\n".join(lines) + "\n"


# table and condition (each a job of its own) -> the damage to its second shard, and how the sentence goes on
DAMAGES = [
    {
        ("turns", "plain"): (cut_in_a_line, r" line 480: cut short"),
        ("turns", "noisy"): (cut_at_a_line_end, r": ends after line \d+, but 480 lines were written"),
        ("runs", "plain"): (broken_json, r" line 3: not JSON \(.+\)"),
        ("runs", "noisy"): (emptied, r": .+"),
    },
    {
        ("turns", "plain"): (edited_record(mood="sour"), r' line 5: unknown key "mood"; the keys are run_id, .+'),
        ("turns", "noisy"): (edited_record(payoff=5), r" line 5: changed after it was written"),
        ("runs", "plain"): (edited_record(seed="2"), r""" line 5: 'seed' is "2", an integer was expected"""),
        ("runs", "noisy"): (edited_record(ending=None), r" line 5: 'ending' is empty, a string was expected"),
    },
]


@pytest.mark.parametrize("damages", DAMAGES, ids=["cut", "edited"])
def test_damaged_records_stop_with_a_sentence_and_heal_by_its_advice(checkout, finished, damages):
    files = {}
    for (table, condition), (damage, _) in damages.items():
        files[table, condition] = f"results/jsonl/tiny/{condition}/seeds-2/{table}.jsonl"
        file = checkout.root / files[table, condition]
        text = file.read_text()
        file.write_text(damage(text))
        assert file.read_text() != text
    outcome = checkout.snakemake("--until", "tabulate")
    assert outcome.code != 0
    for key, (_, fault) in damages.items():
        sentence = f"^{re.escape(files[key])}{fault}.*; delete the file and run snakemake$"
        assert re.search(sentence, outcome.text, re.MULTILINE), (sentence, outcome.text)
        note = f"^Note: tabulate {key[0]} of tiny/{key[1]} failed: {re.escape(files[key])}"
        assert re.search(note, outcome.text[-3000:], re.MULTILINE), outcome.text
        assert not (checkout.results / "parquet" / key[0] / "tiny" / f"{key[1]}.parquet").exists()
    assert "Traceback" not in outcome.text

    for file in files.values():
        (checkout.root / file).unlink()
    outcome = checkout.snakemake("--until", "tabulate")
    assert outcome.code == 0, outcome.text
    assert {job for job in outcome.jobs if "play" in job} == {"play tiny/plain/seeds-2", "play tiny/noisy/seeds-2"}
    assert contents(checkout.results) == contents(finished.results)
