"""An index follows its folder: first build, restart, edits, ignore rules, secrets, interruptions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ngram_cache import NgramIndex, snapshot
from ngram_cache.indexing import Indexer
from ngram_cache.planning import IndexHooks, make_plan
from ngram_cache.repository import FoundFile, RepositoryOptions
from ngram_cache.saved_index import forget
from ngram_cache.snapshot import FileRecord

Write = Callable[[dict[str, str]], None]
Make = Callable[..., Indexer]

FILES = {
    "app.py": "def first_function():\n    return 1\n",
    "lib/tool.py": "class Tool:\n    def second_function(self):\n        pass\n",
    "README.md": "# A project\n",
}


def continuation(index: NgramIndex, context: str, length: int = 12) -> str:
    """The main line of the draft."""
    nodes = index.lookup(list(map(ord, context)), max_nodes=1, max_depth=1).nodes
    text = ""
    while nodes and len(text) < length:
        text += chr(nodes[0].token)
        nodes = index.lookup(list(map(ord, context + text)), max_nodes=1, max_depth=1).nodes
    return text


def all_text(index: NgramIndex) -> str:
    """Everything that is held by the index's saved form."""
    stored = index.stored()
    tokens = [
        segment.tokens(place).tolist()
        for segment in stored.segments
        for place in range(len(segment.documents))
    ]
    return "\n\0".join("".join(map(chr, text)) for text in tokens)


def spelled(index: NgramIndex, path: str) -> str:
    """The text that is drafted from under a path."""
    return "".join(map(chr, index.tokens_of(path).tolist()))


def test_a_folder_is_indexed_saved_and_loaded_again(write: Write, make_indexer: Make) -> None:
    write(FILES)
    first = make_indexer()
    summary = first.build()
    assert (summary.num_documents, summary.num_encoded, summary.message) == (3, 3, "")
    assert first.paths == sorted(FILES)
    assert continuation(first.index, "def first", 10) == "_function("
    second = make_indexer()
    summary = second.build()
    assert (summary.num_documents, summary.num_encoded) == (3, 0)
    assert continuation(second.index, "def second", 10) == "_function("


def test_only_what_changed_is_read_again(write: Write, make_indexer: Make, root: Path) -> None:
    write(FILES)
    make_indexer().build()
    write({"app.py": "def third_function():\n    return 3\n"})
    (root / "README.md").unlink()
    os.utime(root / "lib/tool.py", (5, 5))
    indexer = make_indexer()
    summary = indexer.build()
    assert (summary.num_encoded, summary.num_removed, indexer.paths) == (1, 1, ["app.py", "lib/tool.py"])
    assert "first_function" not in all_text(indexer.index)


def test_progress_is_reported_and_the_processor_is_yielded(write: Write, make_indexer: Make) -> None:
    write({f"f{number:03}.py": f"value_{number} = {number}\n" for number in range(100)})
    seen: list[tuple[int, int]] = []
    pauses: list[None] = []
    hooks = IndexHooks(
        report=lambda done, total, _: seen.append((done, total)), pause=lambda: pauses.append(None)
    )
    make_indexer(hooks=hooks).build()
    assert seen == [(32, 100), (64, 100), (96, 100), (100, 100)]
    assert len(pauses) == 4


def test_a_stopped_run_keeps_what_it_has_and_goes_on_later(write: Write, make_indexer: Make) -> None:
    write({f"f{number:03}.py": f"value_{number} = {number}\n" for number in range(100)})
    done: list[int] = []
    hooks = IndexHooks(report=lambda count, *_: done.append(count), should_stop=lambda: bool(done))
    summary = make_indexer(hooks=hooks).build()
    assert (summary.is_complete, summary.num_documents) == (False, 32)
    summary = make_indexer().build()
    assert (summary.is_complete, summary.num_documents, summary.num_encoded) == (True, 100, 68)


def test_the_index_can_be_used_while_it_is_built(write: Write, make_indexer: Make) -> None:
    write({f"f{number:03}.py": "alpha = beta\n" for number in range(600)})
    seen: list[int] = []
    indexer = make_indexer(hooks=IndexHooks(report=lambda *_: seen.append(indexer.index.num_documents)))
    indexer.build()
    assert 0 < seen[10] < 600


@pytest.mark.parametrize("damage", [b"", b"nonsense" * 20, None])
def test_a_damaged_file_is_rebuilt_with_a_message(
    write: Write, make_indexer: Make, index_folder: Path, damage: bytes | None
) -> None:
    write(FILES)
    make_indexer().build()
    (file,) = index_folder.iterdir()
    file.write_bytes(file.read_bytes()[:-3] if damage is None else damage)
    indexer = make_indexer()
    summary = indexer.build()
    assert "builds the saved index again" in summary.message
    assert (summary.num_encoded, indexer.paths) == (3, sorted(FILES))
    assert make_indexer().build().message == ""


def test_each_tokenizer_has_an_index_of_its_own(write: Write, make_indexer: Make, index_folder: Path) -> None:
    write(FILES)
    make_indexer().build()
    assert make_indexer(fingerprint="other").build().num_encoded == 3
    assert len(list(index_folder.iterdir())) == 2


def test_forget_deletes_the_files(write: Write, make_indexer: Make, root: Path, index_folder: Path) -> None:
    write(FILES)
    make_indexer().build()
    assert forget(root) == 1
    assert list(index_folder.iterdir()) == []


def test_a_disk_that_takes_nothing_costs_the_file_only(
    write: Write, make_indexer: Make, index_folder: Path
) -> None:
    write(FILES)
    indexer = make_indexer()
    index_folder.write_text("a file where a folder should be")
    summary = indexer.build()
    assert "could not be saved" in summary.message
    assert summary.num_documents == 3


def test_edits_are_taken_over(write: Write, make_indexer: Make, root: Path) -> None:
    write(FILES)
    indexer = make_indexer()
    indexer.build()
    write({"app.py": "def third_function():\n", "lib/new.py": "fourth = 4\n", "sub/deep/x.py": "fifth = 5\n"})
    summary = indexer.reconcile([root / "app.py", "lib/new.py", root / "sub"])
    assert (summary.num_encoded, summary.num_removed) == (3, 0)
    assert continuation(indexer.index, "def third", 10) == "_function("
    assert continuation(indexer.index, "fif", 5) == "th = "
    assert indexer.save() == ""
    assert make_indexer().build().num_encoded == 0


def test_a_deleted_folder_is_forgotten_on_disk_at_once(write: Write, make_indexer: Make, root: Path) -> None:
    write(FILES)
    indexer = make_indexer()
    indexer.build()
    (root / "lib/tool.py").unlink()
    (root / "lib").rmdir()
    assert indexer.reconcile(["lib"]).num_removed == 1
    assert indexer.paths == ["README.md", "app.py"]
    loaded = make_indexer()
    loaded.build()
    assert "second_function" not in all_text(loaded.index)


def test_a_renamed_file_has_its_new_name_alone(write: Write, make_indexer: Make, root: Path) -> None:
    write(FILES)
    indexer = make_indexer()
    indexer.build()
    (root / "lib/tool.py").rename(root / "moved.py")
    summary = indexer.reconcile(["lib/tool.py", "moved.py"])
    assert (summary.num_encoded, summary.num_removed) == (1, 1)
    assert indexer.paths == ["README.md", "app.py", "moved.py"]
    assert make_indexer().build().num_encoded == 0


def test_an_open_buffer_keeps_its_name_when_its_file_is_renamed(
    write: Write, make_indexer: Make, root: Path
) -> None:
    write(FILES)
    indexer = make_indexer()
    indexer.build()
    indexer.set_overlay("lib/tool.py", "class Unsaved:\n")
    (root / "lib/tool.py").rename(root / "moved.py")
    assert indexer.reconcile(["lib/tool.py", "moved.py"]).num_encoded == 1
    assert spelled(indexer.index, "lib/tool.py") == "class Unsaved:\n"
    assert spelled(indexer.index, "moved.py") == FILES["lib/tool.py"]
    indexer.drop_overlay("lib/tool.py")
    assert continuation(indexer.index, "class", 5) == " Tool"
    assert not indexer.index.holds("lib/tool.py")
    write({".gitignore": "moved.py\n"})
    indexer.reconcile([".gitignore"])
    assert not indexer.index.holds("moved.py")


def test_whatever_overlay_there_is_goes_when_the_rules_leave_it_out(
    write: Write, make_indexer: Make, root: Path
) -> None:
    write(FILES)
    indexer = make_indexer()
    indexer.build()
    indexer.index.set_overlay("new.py", list(map(ord, "canary_text = 1\n")))
    write({".gitignore": "new.py\n"})
    indexer.reconcile([".gitignore"])
    assert not indexer.index.holds("new.py")


def test_newly_ignored_files_are_forgotten_and_come_back(
    write: Write, make_indexer: Make, root: Path
) -> None:
    write(FILES)
    indexer = make_indexer()
    indexer.build()
    indexer.set_overlay("lib/tool.py", "overlay_text = 1\n")
    write({".gitignore": "lib/\n"})
    assert indexer.reconcile([".gitignore"]).num_removed == 1
    assert indexer.paths == ["README.md", "app.py"]
    assert (indexer.index.num_documents, indexer.index.num_segments) == (2, 1)
    assert "second_function" not in all_text(indexer.index)
    (root / ".gitignore").unlink()
    assert indexer.reconcile([root / ".gitignore"]).num_encoded == 1
    assert indexer.paths == sorted(FILES)


def test_a_file_that_turns_binary_is_forgotten(write: Write, make_indexer: Make, root: Path) -> None:
    write(FILES)
    indexer = make_indexer()
    indexer.build()
    (root / "app.py").write_bytes(b"\0")
    summary = indexer.reconcile(["app.py"])
    assert (summary.num_removed, summary.skipped["binary"]) == (1, 1)
    assert "first_function" not in all_text(indexer.index)


def test_changes_outside_of_the_folder_are_none_of_ours(
    write: Write, make_indexer: Make, tmp_path: Path
) -> None:
    write(FILES)
    indexer = make_indexer()
    indexer.build()
    (tmp_path / "outside.py").write_text("x = 1\n")
    indexer.reconcile([tmp_path / "outside.py", "../outside.py", "/"])
    assert indexer.paths == sorted(FILES)


def test_the_limit_holds_for_later_files_too(write: Write, make_indexer: Make) -> None:
    write(FILES)
    indexer = make_indexer(options=RepositoryOptions(max_files=3))
    indexer.build()
    write({"more.py": "x = 1\n"})
    summary = indexer.reconcile(["more.py"])
    assert (summary.num_documents, summary.skipped["too many files"]) == (3, 1)


def test_open_buffers_hide_their_files(write: Write, make_indexer: Make, root: Path) -> None:
    write(FILES)
    indexer = make_indexer()
    indexer.build()
    indexer.set_overlay(root / "app.py", "def first_draft():\n")
    assert continuation(indexer.index, "def first", 6) == "_draft"
    found = indexer.index.lookup(list(map(ord, "def first")), max_nodes=1, max_depth=1)
    assert indexer.index.path_of(found.nodes[0].document) == "app.py"
    indexer.drop_overlay(root / "app.py")
    assert continuation(indexer.index, "def first", 6) == "_funct"


def test_open_buffers_obey_the_rules_of_files(write: Write, make_indexer: Make) -> None:
    write({".gitignore": "gen/\n"})
    indexer = make_indexer()
    indexer.build()
    for path in (".env", "gen/out.py", "key.pem"):
        indexer.set_overlay(path, "value = canary_text\n")
    indexer.set_overlay("ok.py", "value = canary_text\n-----BEGIN PRIVATE KEY-----\n")
    assert continuation(indexer.index, "canary") == ""
    indexer.set_overlay("ok.py", "password = 'canary_text'\nvalue = 1\n")
    assert continuation(indexer.index, "canary") == ""
    assert continuation(indexer.index, "value", 4) == " = 1"


@pytest.mark.parametrize("path", ["app.py", "./lib/../app.py", "lib/../app.py"])
def test_a_document_has_one_name(make_indexer: Make, root: Path, path: str) -> None:
    indexer = make_indexer()
    assert indexer.repository.document_path(path) == indexer.repository.document_path(root / path) == "app.py"
    assert indexer.repository.document_path("/elsewhere/x.py") == "/elsewhere/x.py"


CANARIES = {
    ".env": "TOKEN=canary-one\n",
    "config/.env.local": "X=canary-two\n",
    "server.pem": "canary-three\n",
    ".ssh/config": "canary-four\n",
    "infra/prod.tfvars": 'db = "canary-five"\n',
    "app/settings.py": "DB_PASSWORD = 'canary-six'\nHOST = 'db.example'\n",
    "app/url.py": "DB = 'postgres://me:canary-seven@db.example/x'\n",
    "app/key.py": "KEY = '''-----BEGIN RSA PRIVATE KEY-----\ncanary-eight\n'''\n",
    "data.json": '{"client_secret": "canary-nine", "port": 80}\n',
    "deploy.sh": "curl -H 'Authorization: Bearer canary-10.x' https://api.example\n",
}


def test_no_planted_secret_can_come_out(write: Write, make_indexer: Make, index_folder: Path) -> None:
    write(CANARIES)
    indexer = make_indexer()
    indexer.build()
    held = all_text(indexer.index)
    assert "canary" not in held
    assert "db.example" in held
    spelled_backwards = "yranac".encode("utf-32-be")
    for file in index_folder.iterdir():
        assert spelled_backwards not in bytes(max(0, byte - 1) for byte in file.read_bytes())
        assert b"canary" not in file.read_bytes()


def test_a_snapshot_that_names_other_files_is_not_trusted(
    write: Write, make_indexer: Make, root: Path
) -> None:
    write(FILES)
    indexer = make_indexer()
    indexer.build()
    stored = NgramIndex([("ghost.py", [1, 2, 3])]).stored()
    path = snapshot.snapshot_path(snapshot.index_directory(), root, "letters")
    ghost = {"ghost.py": FileRecord(1, 1, b"")}
    snapshot.save(path, snapshot.Snapshot("letters", str(root), stored, ghost))
    again = make_indexer()
    assert again.build().num_removed == 1
    assert again.paths == sorted(FILES)


def test_a_plan_reads_the_new_and_the_changed_and_forgets_the_gone() -> None:
    records = {name: FileRecord(1, 1, b"") for name in ("same", "changed", "gone", "outside", "named")}
    files = [
        FoundFile("same", 1, 1),
        FoundFile("named", 1, 1),
        FoundFile("changed", 2, 1),
        FoundFile("new", 1, 1),
    ]
    scope = set(records) - {"outside"}
    plan = make_plan(files, records, scope, {"named"}, max_files=5)
    assert [file.path for file in plan.wanted] == ["named", "changed", "new"]
    assert (plan.gone, plan.num_surplus) == ({"gone"}, 0)
    assert make_plan(files, records, scope, set(), max_files=4).num_surplus == 1


def test_a_walk_that_is_stopped_forgets_nothing(write: Write, make_indexer: Make, root: Path) -> None:
    write(FILES)
    make_indexer().build()
    stopped = make_indexer(hooks=IndexHooks(should_stop=lambda: True))
    summary = stopped.build()
    assert (summary.is_complete, stopped.paths) == (False, sorted(FILES))
    again = make_indexer()
    assert (again.build().num_encoded, again.paths) == (0, sorted(FILES))


def test_nothing_is_saved_where_that_is_forbidden(
    write: Write, make_indexer: Make, index_folder: Path
) -> None:
    write(FILES)
    indexer = make_indexer(hooks=IndexHooks(may_save=lambda: False))
    assert indexer.build().num_documents == 3
    assert indexer.save() == ""
    assert list(index_folder.iterdir()) == []


def test_better_rules_for_secrets_clean_a_saved_index(
    write: Write, make_indexer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"app.py": "canary = 1\n"})
    make_indexer().build()
    monkeypatch.setattr(snapshot, "rules_fingerprint", lambda: "better")
    monkeypatch.setattr("ngram_cache.indexing.blank_secrets", lambda text: text.replace("canary", ""))
    indexer = make_indexer()
    summary = indexer.build()
    assert "other rules" in summary.message
    assert "canary" not in all_text(indexer.index)
    again = make_indexer()
    assert again.build().message == ""
    assert "canary" not in all_text(again.index)


class Panic(BaseException):
    """As a native library ends: no Exception."""


def test_a_file_that_the_tokenizer_fails_at_is_left_out_alone(
    write: Write, root: Path, index_folder: Path
) -> None:
    def encode(texts: list[str]) -> list[list[int]]:
        if any("boom" in text for text in texts):
            raise Panic
        return [list(map(ord, text)) for text in texts]

    write({**FILES, "hostile.py": "boom = 1\n"})
    indexer = Indexer(root, encode, "fragile")
    summary = indexer.build()
    assert (indexer.paths, summary.skipped["no tokens"]) == (sorted(FILES), 1)
    write({"app.py": "boom = 2\n"})
    indexer.reconcile(["app.py"])
    assert indexer.paths == ["README.md", "lib/tool.py"]


def test_an_interrupt_by_the_user_is_passed_on(write: Write, root: Path, index_folder: Path) -> None:
    def encode(_texts: list[str]) -> list[list[int]]:
        raise KeyboardInterrupt

    write(FILES)
    with pytest.raises(KeyboardInterrupt):
        Indexer(root, encode, "interrupted").build()


def test_an_index_holds_no_more_tokens_than_its_limit(
    write: Write, make_indexer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ngram_cache.indexing._MAX_TOKENS", 3_000)
    write({f"f{number:03}.py": f"value_{number} = {number}\n" * 5 for number in range(200)})
    indexer = make_indexer()
    summary = indexer.build()
    assert summary.skipped["too many tokens"] > 0
    assert 0 < indexer.index.num_tokens < 3_000 + 32 * 110


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of any bytes")
def test_a_folder_of_any_name_is_saved_and_loaded_again(root: Path, index_folder: Path) -> None:
    folder = root / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")

    def build() -> tuple[int, int, str]:
        summary = Indexer(folder, lambda texts: [list(text.encode()) for text in texts], "bytes").build()
        return summary.num_documents, summary.num_encoded, summary.message

    assert build() == (1, 1, "")
    assert build() == (1, 0, "")
    assert forget(folder) == 1


def test_what_cannot_be_written_down_costs_the_file_only(
    write: Write, make_indexer: Make, index_folder: Path
) -> None:
    write(FILES)
    indexer = make_indexer(fingerprint="\udce9")
    summary = indexer.build()
    assert "could not be saved" in summary.message
    assert summary.num_documents == 3
    assert list(index_folder.iterdir()) == []


def test_rules_that_nobody_can_judge_are_named(write: Write, make_indexer: Make, root: Path) -> None:
    write({**FILES, "lib/.gitignore": "x" * 10_000})
    indexer = make_indexer()
    summary = indexer.build()
    assert indexer.paths == ["README.md", "app.py"]
    assert str(root / "lib/.gitignore") in summary.message


def test_a_time_beyond_all_bounds_is_saved(write: Write, make_indexer: Make, root: Path) -> None:
    write(FILES)
    os.utime(root / "app.py", ns=(1 << 63, (1 << 63) + 5))
    assert make_indexer().build().message == ""
    assert make_indexer().build().num_encoded == 0


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_the_buffer_of_a_linked_file_is_not_drafted_from(
    write: Write, make_indexer: Make, root: Path
) -> None:
    write({".env": "x", "app.py": ""})
    (root / "notes.txt").symlink_to(root / ".env")
    indexer = make_indexer()
    indexer.build()
    indexer.set_overlay("notes.txt", "value = canary_text\n")
    assert continuation(indexer.index, "canary") == ""
