"""Every table says what a row is: in the SQL file that defines it, or in workflow/schemas/tables.yaml."""

from pathlib import Path

import yaml

from fishpool import records

WORKFLOW = Path(__file__).parents[1] / "workflow"


def test_every_comment_says_what_a_row_is():
    said = yaml.safe_load((WORKFLOW / "schemas" / "tables.yaml").read_text())
    for table, comment in said.items():
        assert " ".join(comment.split()).startswith(f"{table}: a row is "), table


def test_record_tables_have_one_and_no_table_has_two():
    said = set(yaml.safe_load((WORKFLOW / "schemas" / "tables.yaml").read_text()))
    in_sql = {file.stem for file in (WORKFLOW / "sql").rglob("*.sql")}
    assert not said & in_sql
    assert {table for tables in (*records.GAME_TABLES.values(), records.MODEL_TABLES) for table in tables} <= said
