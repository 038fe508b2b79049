from __future__ import annotations

import pytest

from hooksd.config.settings_file import read_settings


def told(text: str) -> list[str]:
    return [
        problem.describe().removeprefix("hooksd.toml:") for problem in read_settings(text.encode()).problems
    ]


SOUND = [
    'daemon.work_area = ""',
    'daemon.work_area = "~"',
    'daemon.work_area = "~/work"',
    'daemon.work_area = "/work"',
    'shell.command = "auto"',
    'shell.command = "/bin/zsh"',
    'serial.hooks = ["*:deploy"]',
    'env.deny = ["*_TOKEN"]\nenv.allow_for."chrys:user:chrys:deploy" = ["AWS_*", "X"]',
    'env.allow_for."programmatic:client:-:my hook: one" = []',
    '[[source]]\nname = "my team"\ndialect = "chrys"\npath = "~/x"\nagents = ["*", "claude"]',
    '[[source]]\nname = "x"\ndialect = "gemini"\npath = "/x"',
    '[[source]]\nname = "bamboo"',
    '[[source]]\nname = "chrys"\nscope = "managed"\npath = "/x"',
    '[[source]]\nname = "project-json"\npath = ".agents/hooks.json"\nenabled = true',
    '[[guard]]\nhooks = "*"',
    '[[guard]]\nhooks = "*"\nevents = ["tool.before", "Stop"]\non_missing = "block"',
]


@pytest.mark.parametrize("text", SOUND)
def test_sound_settings(text: str) -> None:
    assert told(text) == []


SOURCE = '[[source]]\nname = "x"\ndialect = "bamboo"\npath = "/x"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("daemon.work_area = 'work'", "1: daemon.work_area: 'work' is not an absolute path (start it with / or ~/; \"\" switches it off)"),
        ("daemon.work_area = '~u/work'", "1: daemon.work_area: '~u/work' is not an absolute path (start it with / or ~/; \"\" switches it off)"),
        ('daemon.work_area = "~/\\u0000"', "1: daemon.work_area: '~/\\x00' is not an absolute path (start it with / or ~/; \"\" switches it off)"),
        ("shell.command = 'bash'", "1: shell.command: 'bash' is not the absolute path of a shell (write a path such as \"/bin/bash\", or \"auto\")"),
        ('shell.command = "/a\\u0000"', "1: shell.command: '/a\\x00' is not the absolute path of a shell (write a path such as \"/bin/bash\", or \"auto\")"),
        ("serial.hooks = ['a', ' ']", "1: serial.hooks[1]: the pattern is blank and fits nothing (\"*\" fits every name)"),
        ("env.deny = ['']", "1: env.deny[0]: the pattern is blank and fits nothing (\"*\" fits every name)"),
        ("env.allow_for.'a:b:c:d' = ['']", "1: env.allow_for[\"a:b:c:d\"][0]: the pattern is blank and fits nothing (\"*\" fits every name)"),
        ("env.allow_for.'bamboo:user:x' = []", "1: env.allow_for[\"bamboo:user:x\"]: 'bamboo:user:x' is not the full name of a hook (a full name is <dialect>:<scope>:<source>:<id>; `hooksd explain` shows it)"),
        ("env.allow_for.'bamboo:user:x:Stop[0].hooks[0]' = []", "1: env.allow_for[\"bamboo:user:x:Stop[0].hooks[0]\"]: 'bamboo:user:x:Stop[0].hooks[0]' names a hook by its position, which another hook may have after the next edit (variables may be allowed only for hooks that have an id)"),
        ("env.allow_for.'chrys:user:x:*' = []", "1: env.allow_for[\"chrys:user:x:*\"]: 'chrys:user:x:*' is a pattern (allow variables for one hook at a time, by its name)"),
        (SOURCE + "[[source]]\nname = 'x'\ndialect = 'bamboo'\npath = '/y'", "6: source[1].name: the name 'x' is taken by source[0] (give each [[source]] a name of its own)"),
        ("[[source]]\nname = 'mine'\npath = '/x'", "1: source[0]: the key 'dialect' is missing (only a source with the name of a default may leave it out)"),
        ("[[source]]\nname = 'bambo'\ndialect = 'bamboo'", "1: source[0]: the key 'path' is missing (did you mean bamboo?)"),
        (SOURCE.replace("bamboo", "bambu"), "3: source[0].dialect: unknown dialect 'bambu' (did you mean bamboo?)"),
        (SOURCE.replace("bamboo", "x"), "3: source[0].dialect: unknown dialect 'x' (known words: bamboo, chrys, claude, codex, copilot, cursor, gemini)"),
        (SOURCE.replace("/x", "x"), "4: source[0].path: 'x' is not an absolute path (start it with / or ~/)"),
        (SOURCE.replace("/x", ""), "4: source[0].path: '' is not an absolute path (start it with / or ~/)"),
        (SOURCE + "agents = []", "5: source[0].agents: no agent is named (write enabled = false to switch the source off)"),
        (SOURCE + "agents = ['*',\n'cursr']", "6: source[0].agents[1]: unknown agent 'cursr' (did you mean cursor?)"),
        ("[[source]]\nname = 'project-json'\nscope = 'user'", "3: source[0].scope: the scope of project-json cannot be changed (leave scope out, or add a [[source]] of another name)"),
        ("[[guard]]\nhooks = ' '", "2: guard[0].hooks: the pattern is blank and fits nothing (\"*\" fits every name)"),
        ("[[guard]]\nhooks = '*'\non_missing = 'block'", "1: guard[0]: on_missing = \"block\" needs events: those that are blocked while no hook fits (for example events = [\"tool.before\"])"),
        ("[[guard]]\nhooks = '*'\nevents = []", "3: guard[0].events: no event is named (leave events out for every gate)"),
        ("[[guard]]\nhooks = '*'\nevents = []\non_missing = 'block'", "3: guard[0].events: no event is named (leave events out for every gate)"),
        ("[[guard]]\nhooks = '*'\nevents = ['PreTool']", "3: guard[0].events[0]: unknown event 'PreTool' (did you mean PreToolUse?)"),
    ],
)  # fmt: skip
def test_a_rule_that_is_broken(text: str, problem: str) -> None:
    assert told(text) == [problem]


def test_an_event_that_resembles_none() -> None:
    (problem,) = told("[[guard]]\nhooks = '*'\nevents = ['qqq']")

    assert problem.startswith(
        "3: guard[0].events[0]: unknown event 'qqq' (normalised events: session.start, "
    )


@pytest.mark.parametrize("path", ["/x", "~/x", "../x", "a/../../x", "", "a\\u0000"])
def test_a_source_of_projects_stays_inside_them(path: str) -> None:
    (problem,) = told(f'[[source]]\nname = "project-bamboo"\npath = "{path}"')

    assert problem.startswith("3: source[0].path: ")
    assert problem.endswith(
        " is not a path inside the workspace (write it relative to the workspace, without ..)"
    )


@pytest.mark.parametrize("name", ["", " x", "x ", "a:b", "a*", "a\\nb", "x" * 65, "hooksd.toml", "a\\u0007"])
def test_a_source_needs_a_name_that_can_stand_in_the_names_of_hooks(name: str) -> None:
    (problem,) = told(SOURCE.replace('"x"', f'"{name}"', 1))

    assert problem.startswith("2: source[0].name: ")
    assert "cannot be the name of a source" in problem


def test_a_wrong_value_is_told_once_and_hides_nothing() -> None:
    problems = told(
        '[[source]]\nname = "x"\ndialect = 3\npath = "y"\nagents = "z"\n[[source]]\nname = 4\n[[source]]\n'
    )

    assert [problem.split(": ")[1] for problem in problems] == [
        "source[0].dialect",
        "source[0].path",
        "source[0].agents",
        "source[1].name",
        "source[2]",
    ]


@pytest.mark.parametrize("text", ["source = 3", "source = [3]", "[[source]]\nname = 3"])
def test_names_are_compared_only_where_there_are_some(text: str) -> None:
    assert all("is taken by" not in problem for problem in told(text))
