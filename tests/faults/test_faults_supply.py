"""What is installed is what was locked, may be used, and tells no secret; questions to the database change nothing.

That no key of an API is in any file is held by a whole study in `test_faults_hostile_text.py`; here are single doors.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import duckdb
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fishpool import cli

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
ENTRIES = re.split(r"^(?=\S)", LOCK, flags=re.MULTILINE)[1:]  # several of a package whose version hangs on Python's
NAMES = {entry.partition("==")[0] for entry in ENTRIES}
SMALL = "markupsafe"  # a package that is installed in a moment
sys.path.append(str(ROOT / "docs"))


# ── Hashes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_entry_of_the_lock_has_a_version_and_hashes_and_no_address() -> None:
    for entry in ENTRIES:
        first, *hashes = entry.rstrip().split(" \\\n")
        assert re.fullmatch(r"[a-z0-9-]+==[^ ;*]+( ; [^\n]+)?", first), first
        assert hashes
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", one) for one in hashes), first
    assert "://" not in LOCK


def test_whatever_an_extra_installs_is_in_the_lock_in_this_version() -> None:
    """What the lock lacked would be installed unchecked."""
    extras = metadata.metadata("fishpool").get_all("Provides-Extra") or []
    waiting = [("fishpool", extra) for extra in ["", *extras]]
    seen: set[tuple[str, str]] = set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        if name != "fishpool":
            assert f"\n{name}=={metadata.version(name)} " in f"\n{LOCK}"
        for needed in map(Requirement, metadata.requires(name) or []):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(needed.name), one) for one in ["", *needed.extras]]
    assert len({name for name, _ in seen}) > 150
    backend = re.search(r'requires = \["([a-z]+)', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert backend
    assert backend[1] in NAMES


def installing(folder: Path, target: str) -> list[str]:
    """The command that `make` runs for a target, in a folder with copies of what it reads."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "uv").touch()
    said = subprocess.run(["make", "--dry-run", target], cwd=folder, capture_output=True, text=True, check=True)
    command = shlex.split([line for line in said.stdout.splitlines() if "pip install" in line][-1])
    assert command[:3] == [".venv/bin/uv", "pip", "install"]
    return command


@pytest.mark.parametrize("target", [".venv/core", ".venv/embedded", ".venv/dev"])
def test_make_installs_from_the_lock_alone(target: str, tmp_path: Path) -> None:
    command = installing(tmp_path, target)
    assert command[command.index("--constraints") + 1] == "requirements.lock"
    assert command[command.index("--build-constraints") + 1] == "requirements.lock"
    assert "--no-verify-hashes" not in command
    assert not any(option.startswith(("--index", "--extra-index", "--find-links")) for option in command)


def test_make_refuses_a_package_with_another_hash(tmp_path: Path) -> None:
    """The command of the Makefile, for one package of a few kB; the package manager's own check, not ours."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        pytest.skip("uv is not installed here")
    command = [uv, *installing(tmp_path, ".venv/core")[1:]]
    command = [*command[: command.index("--editable")], "--target", "installed", "--no-deps", "--no-cache", SMALL]
    command[command.index("--python") + 1] = sys.executable
    installed = tmp_path / "installed" / SMALL
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode and "mismatch" not in done.stderr.lower():
        pytest.skip(f"no package can be had here: {done.stderr.splitlines()[-1:]}")
    assert done.returncode == 0, done.stderr
    assert installed.is_dir()
    shutil.rmtree(tmp_path / "installed")
    [entry] = [entry for entry in ENTRIES if entry.startswith(f"{SMALL}==")]
    tampered = re.sub(r"sha256:.", lambda one: f"sha256:{'1' if one[0][-1] == '0' else '0'}", entry)
    (tmp_path / "requirements.lock").write_text(LOCK.replace(entry, tampered), encoding="utf-8")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"Hash mismatch for `{SMALL}=={metadata.version(SMALL)}`" in done.stderr
    assert not installed.exists()


# ── Licences ─────────────────────────────────────────────────────────────────────────────────────────────────────

# Those that let others use a package beside code of the MIT licence, as long as notices are kept, or changes of its own
# files are published (MPL). Of "A OR B", and of several classifiers, one is enough.
ALLOWED = re.compile(
    r"MIT( License|-CMU)?|0BSD|BSD( License|-[23]-Clause)?|Apache([ -]2\.0| Software License|"
    r" License, Version 2\.0)|Python Software Foundation License|PSF-2\.0|ISC|Zlib|CC0-1\.0|Unlicense|Public Domain"
    r"|MPL-2\.0|Mozilla Public License 2\.0 \(MPL 2\.0\)|Gemma Terms of Use"
)


def test_the_licence_of_every_package_is_listed_and_goes_with_ours() -> None:
    import generate

    assert "MIT License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert generate.locked().keys() == NAMES
    assert len(generate.packages().splitlines()) == 2 + len(NAMES)
    markers = [Requirement(entry.partition(" \\\n")[0]) for entry in ENTRIES]
    needed_here = {one.name for one in markers if one.marker is None or one.marker.evaluate()}
    assert len(needed_here) > len(NAMES) - 10
    for name in sorted(needed_here):
        licence = generate.licence(name)
        either = [one.split(" AND ") for one in re.split(r"; | OR ", licence)]
        assert any(all(map(ALLOWED.fullmatch, parts)) for parts in either), f"{name}: {licence}"


# ── The database is asked, not used ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["database", "parquet"])
def results(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A results folder with a database, or with nothing but finished tables; beside it files that are nobody's."""
    monkeypatch.chdir(tmp_path)
    Path("secret.csv").write_text("word\nopensesame\n", encoding="utf-8")
    Path("results/parquet/runs/one").mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute("COPY (SELECT 'a' AS run_id) TO 'results/parquet/runs/one/plain.parquet'")
        connection.execute("COPY (SELECT 'opensesame' AS word) TO 'secret.parquet'")
    if request.param == "database":
        with duckdb.connect("results/fishpool.duckdb") as connection:
            connection.execute("CREATE TABLE runs AS FROM 'results/parquet/runs/one/plain.parquet'")
    return tmp_path / "results"


REFUSED = """
    CREATE TABLE t AS SELECT 1
    CREATE TEMP TABLE t AS SELECT 1
    CREATE OR REPLACE TABLE runs AS SELECT 1
    CREATE VIEW v AS SELECT 1
    CREATE MACRO m() AS 1
    CREATE SECRET s (TYPE s3)
    CREATE SCHEMA s
    CREATE TYPE e AS ENUM ('a')
    DROP TABLE runs
    ALTER TABLE runs ADD COLUMN x INTEGER
    INSERT INTO runs VALUES ('b')
    UPDATE runs SET run_id = 'b'
    DELETE FROM runs
    TRUNCATE runs
    VACUUM
    COPY runs TO 'out.csv'
    COPY runs TO '/dev/stdout'
    COPY (SELECT 1) TO 'out.parquet' (FORMAT parquet)
    COPY runs FROM 'secret.csv'
    EXPORT DATABASE 'out'
    IMPORT DATABASE 'out'
    COPY FROM DATABASE memory TO memory
    ATTACH 'out.duckdb'
    ATTACH 'secret.sqlite' (TYPE sqlite)
    ATTACH ':memory:' AS m
    DETACH memory
    USE memory
    INSTALL httpfs
    INSTALL sqlite FROM community
    LOAD httpfs
    LOAD '/tmp/x.duckdb_extension'
    UPDATE EXTENSIONS
    SET enable_external_access = true
    SET lock_configuration = false
    SET memory_limit = '1TB'
    SET VARIABLE x = 1
    RESET ALL
    RESET lock_configuration
    PRAGMA enable_profiling
    PRAGMA temp_directory = '/tmp'
    CALL force_checkpoint()
    CHECKPOINT
    BEGIN
    COMMIT
    PREPARE p AS SELECT 1
    EXECUTE p
    DEALLOCATE p
    COMMENT ON TABLE runs IS 'x'
    EXPLAIN ANALYZE COPY runs TO 'out.csv'
    FROM 'secret.csv'
    FROM 'secret.parquet'
    FROM read_csv('secret.csv')
    FROM read_csv_auto('secret.csv')
    FROM read_text('secret.csv')
    FROM read_blob('secret.csv')
    FROM read_json('secret.csv')
    FROM read_ndjson('secret.csv')
    FROM read_parquet('secret.parquet')
    FROM parquet_scan('secret.parquet')
    FROM parquet_metadata('secret.parquet')
    FROM parquet_schema('secret.parquet')
    FROM sniff_csv('secret.csv')
    FROM glob('*')
    FROM read_text('results/parquet/../../secret.csv')
    FROM read_text('file:///etc/passwd')
    FROM '/etc/passwd'
    FROM read_csv('http://127.0.0.1:9/x.csv')
    FROM 'https://127.0.0.1:9/x.parquet'
    FROM 's3://bucket/x.parquet'
    FROM read_csv('/dev/stdin')
    FROM read_text('/proc/self/environ')
    FROM query('COPY runs TO ''out.csv''')
    FROM query('FROM read_text(''secret.csv'')')
    FROM query_table(['secret.csv'])
    FROM (PIVOT (FROM read_text('secret.csv')) ON filename USING count(*))
    WITH t AS (FROM read_csv('secret.csv')) FROM t
    SELECT (SELECT content FROM read_text('secret.csv'))
    FROM sqlite_scan('a', 'b')
    SELECT 1; DROP TABLE runs
    SELECT 1; SELECT 2
    /* SELECT */ DROP TABLE runs
    FROM connection
    FROM database
    SELECT getenv('LAB_KEY')
"""


def test_a_statement_that_does_more_than_read_the_tables_is_refused_by_one_sentence(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", "opensesame")
    before = {file: file.read_bytes() for file in results.parent.rglob("*") if file.is_file()}
    for query in REFUSED.strip().splitlines():
        code = cli.main(["sql", query.strip()])
        out, err = capsys.readouterr()
        assert (code, out) == (2, ""), query
        assert len([line for line in err.splitlines() if "is not made yet" not in line]) == 1, err
        assert "opensesame" not in err
    assert {file: file.read_bytes() for file in results.parent.rglob("*") if file.is_file()} == before


def test_no_list_of_the_database_tells_the_environment(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", "sk-in-the-environment")
    for function in ("secrets", "settings", "variables", "databases", "logs", "external_file_cache"):
        cli.main(["sql", f"FROM duckdb_{function}()", "--json"])
        out, err = capsys.readouterr()
        assert "sk-in-the-environment" not in out + err


# ── Single doors of secrets ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command", ["play prisoners_dilemma --against model:lab/m", "doctor"])
def test_a_key_that_cannot_be_one_is_not_shown(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAB_KEY", "sk-secret-0123456789\r")  # as a file with the line ends of Windows gives it
    (tmp_path / "lab.yaml").write_text(
        "servers: {lab: {kind: openai, api_key: LAB_KEY, endpoints: ['http://127.0.0.1:9/v1'], retries: 0}}\n"
        "studies: {asked: {game: prisoners_dilemma, seeds: 1, players: [{model: lab/m}], conditions: {plain: {}}}}\n"
        "only: asked\n"
    )
    code = cli.main([*shlex.split(command), "--configfile", "lab.yaml"])
    out, err = capsys.readouterr()
    assert code == 2
    assert "LAB_KEY holds" in out + err
    assert "sk-secret" not in out + err
