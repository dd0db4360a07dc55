"""The description that the arena serves, fuzzed against the arena itself: it names every answer that there is."""

from __future__ import annotations

import httpx
import pytest
import schemathesis
from arena_process import ArenaProcess
from hypothesis import HealthCheck, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

SEED = 20_260_101


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    with ArenaProcess(tmp_path_factory.mktemp("arena"), "--rounds=3", "--turn-timeout=standard=5") as process:
        yield process
        log = process.errors.read_text()
        assert "Traceback" not in log, log
        assert "ERROR" not in log, log


@pytest.fixture(scope="module")
def described(arena):
    return schemathesis.openapi.from_url(f"{arena.url}/openapi.json", config=SchemathesisConfig(seed=SEED))


@pytest.fixture(scope="module")
def agents(arena):
    """The headers of two agents."""
    keys = [httpx.post(f"{arena.url}/api/agents", json={"name": f"fuzz {n}"}).json()["apiKey"] for n in (1, 2)]
    return [{"Authorization": f"Bearer {key}"} for key in keys]


@pytest.fixture
def match(arena, agents):
    """A live match of theirs."""
    wish = {"gameId": "prisoners-dilemma", "lane": "standard"}
    for headers in agents * 2:
        answer = httpx.post(f"{arena.url}/api/matchmaking/queue", json=wish, headers=headers).json()
    return answer["matchId"]


CALLS = [
    ("POST", "/api/agents"),
    ("POST", "/api/matchmaking/queue"),
    ("GET", "/api/matchmaking/status"),
    ("GET", "/api/matches/{match_id}/state"),
    ("POST", "/api/matches/{match_id}/action"),
    ("GET", "/api/games/{game_id}/rules"),
    ("GET", "/api/games/{game_id}/strategy"),
    ("GET", "/api/games/{game_id}/validator"),
]


def fuzz(described, method, path, check, examples=25):
    """`check` each of some cases of one call, half of them such as the description allows."""
    for mode in schemathesis.GenerationMode:

        @seed(SEED)
        @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(described[path][method].as_strategy(generation_mode=mode))
        def run(case):
            if path.endswith("/state"):
                case.query = {**(case.query or {}), "wait": "false"}
            check(case)

        run()


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_answers_conform_to_the_description(described, agents, method, path):
    # Unknown query parameters are ignored, and the key that a case leaves out is added here: no fault of the arena's.
    excluded = [] if method == "POST" else [negative_data_rejection]

    def check(case):
        case.call_and_validate(headers=agents[0], timeout=10, excluded_checks=excluded)

    fuzz(described, method, path, check)


@pytest.mark.parametrize(("method", "path"), [call for call in CALLS if "match_id" in call[1]])
def test_answers_about_a_real_match_conform_to_the_description(described, agents, match, method, path):
    checks = [
        not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance
    ]  # fmt: skip
    statuses = set()

    def check(case):
        case.path_parameters = {"match_id": match}
        statuses.add(case.call_and_validate(headers=agents[0], timeout=10, checks=checks).status_code)

    fuzz(described, method, path, check)
    assert statuses & {200, 409}, statuses


def test_every_call_but_registration_needs_a_key(arena):
    paths = httpx.get(f"{arena.url}/openapi.json").json()["paths"]
    assert [(method.upper(), path) for path, operations in paths.items() for method in operations] == CALLS
    for path, operations in paths.items():
        for method, operation in operations.items():
            assert ("security" in operation) == (path != "/api/agents")
            assert "422" not in operation["responses"]
            if path != "/api/agents":
                path_of_nothing = path.replace("{game_id}", "prisoners-dilemma").replace("{match_id}", "match-1")
                answer = httpx.request(
                    method, arena.url + path_of_nothing, params={"gameId": "prisoners-dilemma"}, json={}
                )
                # What is read before the key is asked for is refused all the same.
                assert answer.status_code in (400, 401), path
