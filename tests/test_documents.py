"""Strategy documents on disk, and the one sentence that each bad one gets."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fishpool.documents import TOKEN_LIMIT, count_tokens, parse_document, read_documents

GOOD = "---\nname: ada\nfamily: test\n---\nI share.\n"


def test_the_nine_documents_of_the_product():
    documents = read_documents(Path(__file__).parents[1] / "config" / "strategies")
    assert len(documents) == 9
    for document in documents:
        assert count_tokens(document.text) <= TOKEN_LIMIT
        assert "---" not in document.text  # nobody who reads the strategy sees its family
        assert document.rule is not None


def test_only_the_body_is_the_strategy():
    document = parse_document(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode(), "ada.md")
    assert (document.name, document.family, document.text) == ("ada", "test", "I share.")


def test_a_rule_of_dashes_in_the_body_is_text():
    document = parse_document(f"{GOOD}\n---\nname: eve\n---\n".encode(), "ada.md")
    assert document.name == "ada"
    assert "name: eve" in document.text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"I share.\n", "front matter is missing"),
        (b"---\nname: ada\nfamily: test\n", "front matter is missing"),
        (b"---\nname: ada\nfamily: test\n---\n\n", "nothing stands below"),
        (b"---\nname: ada\n---\nI share.", "no family"),
        (b"---\nfamily: test\n---\nI share.", "no name"),
        (b"---\n- ada\n---\nI share.", "holds no keys"),
        (b"---\nname: [\n---\nI share.", "is not YAML"),
        (b"---\nname: 7\nfamily: test\n---\nI share.", 'name is "7"'),
        (b"---\nname: 'a b'\nfamily: test\n---\nI share.", 'name is "a b"'),
        (b"---\nname: ada\nfamily: test\nmood: good\n---\nI share.", '"mood" is unknown'),
        (b"---\nname: ada\nfamily: test\nkind: perhaps\n---\nI share.", 'kind is "perhaps"'),
        (b"---\nname: ada\nfamily: test\n---\nI sh\xffre.", "is not UTF-8"),
        (GOOD.encode() + b"word " * 1001, "1004 tokens, at most 1000"),
        (GOOD.encode() + b"x" * 8001, "1004 tokens, at most 1000"),
    ],
)
def test_a_bad_document_gets_one_sentence_that_names_the_file(content, says):
    with pytest.raises(ValueError, match=r"ada\.md") as fault:
        parse_document(content, "ada.md")
    assert says in str(fault.value)
    assert "\n" not in str(fault.value)


def test_every_fault_of_a_folder_is_told(tmp_path):
    (tmp_path / "a.md").write_text(GOOD)
    (tmp_path / "b.md").write_text(GOOD)
    (tmp_path / "c.md").write_text("")
    with pytest.raises(ValueError, match=r"c.md") as fault:
        read_documents(tmp_path)
    faults = str(fault.value).splitlines()
    assert len(faults) == 2
    assert 'name "ada" is taken by' in faults[0]


def test_what_is_no_file_or_cannot_be_an_input_gets_one_sentence_on_one_line(tmp_path):
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "gone.md").symlink_to("nowhere")
    for name in ("a{b}.md", "a\udcff.md", "a\nb.md"):
        (tmp_path / name).write_text("" if "\n" in name else GOOD)
    with pytest.raises(ValueError, match=r"folder.md") as fault:
        read_documents(tmp_path)
    said = [line.removeprefix(f"{tmp_path}/") for line in str(fault.value).splitlines()]
    assert said == [
        r"a\nb.md: the file is empty; write the front matter (name, family) and the strategy",
        "a{b}.md: the name of the file holds a brace, which Snakemake would fill in, or is not UTF-8; rename it",
        r"a\udcff.md: the name of the file holds a brace, which Snakemake would fill in, or is not UTF-8; rename it",
        "folder.md: cannot be read (Is a directory); every *.md of the folder is a strategy document",
        "gone.md: cannot be read (No such file or directory); every *.md of the folder is a strategy document",
    ]


def test_a_folder_without_documents(tmp_path):
    with pytest.raises(ValueError, match="no strategy document"):
        read_documents(tmp_path)


@given(st.one_of(st.binary(), st.text().map(lambda text: f"---\n{text}\n---\nI share.".encode("utf-8", "replace"))))
@example(b"---\nname: 2024-13-40\nfamily: test\n---\nI share.")
@example(b"---\nname: " + b"[" * 2000 + b"\n---\nI share.")
@example(b"---\n&a name: *a\n? [x]\n: 1\n---\nI share.")
@example(b"---\nname: !!python/object/apply:os.system ['true']\nfamily: test\n---\nI share.")
@settings(deadline=None)
def test_any_bytes_are_a_document_or_one_sentence(content):
    try:
        document = parse_document(content, "any.md")
    except ValueError as error:
        faults = str(error).splitlines()
    else:
        faults = ["any.md: "]
        assert document.text.strip()
        assert count_tokens(document.text) <= TOKEN_LIMIT
    (fault,) = faults
    assert fault.startswith("any.md: ")
