"""The misbehaving server as a process: what it counts must be right, since other tests believe it."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from misbehaving import instance

PROGRAM = Path(__file__).with_name("misbehaving.py")


def test_it_counts_its_calls_in_a_file(tmp_path: Path) -> None:
    ports, counts = tmp_path / "port", tmp_path / "counts"
    script = json.dumps([500])
    command = [sys.executable, PROGRAM, "--port-file", ports, "--count-file", counts, "--script", script]
    with subprocess.Popen(command) as process:
        try:
            until = time.monotonic() + 30
            while not ports.exists():
                assert time.monotonic() < until
                time.sleep(0.05)
            url = f"http://127.0.0.1:{ports.read_text()}"
            body = json.dumps({"model": "test", "messages": [], "seed": 3}).encode()
            with pytest.raises(urllib.error.HTTPError, match="500"):
                urllib.request.urlopen(f"{url}/v1/chat/completions", body)
            with urllib.request.urlopen(f"{url}/v1/chat/completions", body) as response:
                assert json.loads(response.read())["choices"][0]["message"]["content"] == "{}"
            with urllib.request.urlopen(f"{url}/stats") as response:
                assert json.loads(response.read()) == {"calls": 2, "peak": 1}
        finally:
            process.kill()
    calls = [json.loads(line) for line in counts.read_text().splitlines()]
    assert [call["seed"] for call in calls] == [3, 3]
    assert calls[0]["prompt"] == calls[1]["prompt"]


def test_an_ordinary_answer_fits_the_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "reasoning": {"type": "string"},
            "choice": {"enum": ["cooperate", "defect"]},
            "catch": {"type": "integer", "minimum": 2, "maximum": 4},
        },
    }
    answers = [instance(schema, luck) for luck in range(6)]
    assert {answer["choice"] for answer in answers} == {"cooperate", "defect"}
    assert {answer["catch"] for answer in answers} == {2, 3, 4}
