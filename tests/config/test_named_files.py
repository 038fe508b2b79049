"""Which words of a hook could be files, and where a path enters a project."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hooksd.config.named_files import MAX_WORDS, is_file, named_words, place_in
from hooksd.model.hooks import Argv, Programmatic, Script, ShellCommand


def shell(command: str) -> set[str]:
    return set(named_words(ShellCommand(command=command, shells=("sh",))))


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("./guard.sh", "./guard.sh"),
        ("bash hooks/guard.sh --strict", "hooks/guard.sh"),
        ("cd /tmp && ./guard.sh|tee log", "./guard.sh"),
        ("'my hooks/guard.sh'", "my hooks/guard.sh"),
        ('"$PROJECT"/hooks/guard.sh', "hooks/guard.sh"),
        ("${PROJECT}/hooks/guard.sh", "hooks/guard.sh"),
        ('"$(pwd)/hooks/guard.sh"', "hooks/guard.sh"),
        ("~/guard.sh", "guard.sh"),
        ("python3 -c 'exec(open(\"guard.py\").read())'", "guard.py"),
        ("sh -c 'cd x; exec ./guard.sh $1'", "./guard.sh"),
        ("""bash -c "sh -c './guard.sh now'" """, "./guard.sh"),
        ("node --require=./guard.js x", "./guard.js"),
        ("ENV=./rc sh", "./rc"),
        ("cat <rules.txt", "rules.txt"),
        ("exec >(./guard.sh)", "./guard.sh"),
        ("./guard.sh 'unclosed", "./guard.sh"),
        ("# ./guard.sh", "./guard.sh"),
        ("first\n./second.sh\n", "./second.sh"),
        ("`./guard.sh`", "./guard.sh"),
        ("echo $(<./guard.sh)", "./guard.sh"),
    ],
)
def test_words_of_a_command_line(command: str, named: str) -> None:
    assert named in shell(command)


@pytest.mark.parametrize(
    "command", ["x > out.log", "x >> out.log 2>&1", "x &> out.log", "x >| 'out.log'", 'x 2>"out.log"']
)
def test_what_is_written_to_is_not_named(command: str) -> None:
    assert "out.log" not in shell(command)
    assert "x" in shell(command)


def test_words_of_an_argument_list() -> None:
    handler = Argv(argv=("python3", "hooks/a b.py", "--config=c.json", "sh -c ./d.sh", ""))

    assert {"python3", "hooks/a b.py", "c.json", "./d.sh"} <= set(named_words(handler))
    assert "" not in named_words(handler)


def test_words_of_a_script() -> None:
    handler = Script(path="run.py", base="/p/.chrys/hooks", runtimes=(), arguments=("--rules", "r.txt"))

    assert named_words(handler) == ("/p/.chrys/hooks/run.py", "--rules", "r.txt")
    assert named_words(Script(path="/p/run.py", runtimes=())) == ("/p/run.py",)


def test_a_hook_without_a_process_names_nothing() -> None:
    assert named_words(None) == ()
    assert named_words(Programmatic(registration_id="r", priority=1)) == ()


def test_words_are_bounded() -> None:
    command = " ".join(f"w{number}" for number in range(10 * MAX_WORDS))

    assert len(shell(command)) == MAX_WORDS + 1
    assert named_words(Argv(argv=("a\0b", "a=" * 5000)))


@given(st.text())
def test_every_command_line_has_words(command: str) -> None:
    assert all("\0" not in word and word for word in shell(command))


@given(st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8}){0,3}\.sh", fullmatch=True), st.sampled_from("'\""))
def test_a_quoted_path_is_found_wherever_it_stands(path: str, quote: str) -> None:
    assert path in shell(f"x {quote}{path}{quote} y")
    assert path in shell(f"if true; then {path}; fi")


# ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "p" / "hooks").mkdir(parents=True)
    (tmp_path / "p2").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "way").symlink_to("p")
    (tmp_path / "p" / "out").symlink_to("../outside")
    (tmp_path / "outside" / "back").symlink_to("../p/hooks")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("p/a.sh", "a.sh"),
        ("p/hooks/a.sh", "hooks/a.sh"),
        ("p//hooks/./a.sh", "hooks/a.sh"),
        ("p/hooks/../a.sh", "a.sh"),
        ("way/hooks/a.sh", "hooks/a.sh"),
        ("outside/back/a.sh", "hooks/a.sh"),
        # A link in the project is the project's own, wherever it leads.
        ("p/out/a.sh", "out/a.sh"),
        # What leaves through a link does not come back by the name.
        ("p/out/../a.sh", None),
        ("p/out/../p/a.sh", "a.sh"),
        ("p/../outside/a.sh", None),
        ("p2/a.sh", None),
        ("outside/a.sh", None),
        ("p", None),
        ("P/a.sh", None),
    ],
)
def test_where_a_path_enters_a_project(project: Path, path: str, place: str | None) -> None:
    assert place_in(str(project / "p"), f"{project}/{path}") == place


def test_a_project_may_be_the_root() -> None:
    assert place_in("/", "/a/b.sh") == "a/b.sh"


def test_only_regular_files_are_files(project: Path) -> None:
    (project / "f").write_text("")
    (project / "link").symlink_to("f")

    assert is_file(f"{project}/f")
    assert is_file(f"{project}/link")
    assert not any(map(is_file, (str(project), f"{project}/none", "a\0b", f"{project}/f/x", "/dev/null")))
