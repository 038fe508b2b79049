from __future__ import annotations

import gc
from collections.abc import Callable

import msgspec

from hooksd.config.guards import Policy
from hooksd.config.layer import LayerCompiler, LoadedSource
from hooksd.config.settings import EnvSettings, GuardSettings, SerialSettings, Settings
from hooksd.model.events import EventName
from hooksd.model.hooks import Hook
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import SourceState


MakeHook = Callable[..., Hook]
Load = Callable[..., LoadedSource]


def test_equal_layers_are_one_object(make_hook: MakeHook, load: Load) -> None:
    compiler, policy = LayerCompiler(), Policy(Settings())
    source = load(make_hook("a"))

    layer = compiler.compile([source], policy)

    assert compiler.compile([load(make_hook("a"))], Policy(Settings())) is layer
    assert compiler.compile([load(make_hook("b"))], policy) is not layer
    assert compiler.compile([], policy).parts == ()


def test_a_change_of_one_source_compiles_no_other(make_hook: MakeHook, load: Load) -> None:
    compiler, policy = LayerCompiler(), Policy(Settings())
    first, other = load(make_hook("a")), load(make_hook("b"), name="other")

    before = compiler.compile([first, other], policy)
    after = compiler.compile([first, load(make_hook("c"), name="other")], policy)

    assert after.digest != before.digest
    assert after.parts[0] is before.parts[0]
    assert after.parts[1] is not before.parts[1]


def test_what_is_wrong_with_a_source_now_is_part_of_the_layer(make_hook: MakeHook, load: Load) -> None:
    """A file that became invalid is told at once, though the last good version goes on serving."""
    compiler, policy = LayerCompiler(), Policy(Settings())
    good = load(make_hook("a"))
    problem = ConfigProblem(severity=Severity.ERROR, path="", message="does not parse")
    invalid = msgspec.structs.replace(good, state=SourceState.INVALID, problems=(problem,))

    before, after = compiler.compile([good], policy), compiler.compile([invalid], policy)

    assert after is not before
    assert after.parts[0].hooks == before.parts[0].hooks
    (report,) = after.sources
    assert (report.state, report.hooks, report.problems) == (SourceState.INVALID, 1, (problem,))


def test_one_text_may_come_to_different_hooks(make_hook: MakeHook, load: Load) -> None:
    """Trust is granted, and the hooks of the same file are there."""
    compiler, policy = LayerCompiler(), Policy(Settings())
    untrusted = load(content_digest="d", state=SourceState.UNTRUSTED)
    trusted = load(make_hook("a"), content_digest="d")

    layers = [compiler.compile([source], policy) for source in (untrusted, trusted)]

    assert [len(layer.parts[0].hooks) for layer in layers] == [0, 1]


def test_only_settings_that_matter_to_hooks_compile_them_anew(make_hook: MakeHook, load: Load) -> None:
    compiler, source = LayerCompiler(), load(make_hook("a"))
    layer = compiler.compile([source], Policy(Settings()))

    def compiled(settings: Settings) -> object:
        return compiler.compile([source], Policy(settings))

    assert compiled(Settings(env=EnvSettings(deny=("X",)))) is layer
    assert compiled(Settings(guard=(GuardSettings(hooks="*"),))) is not layer
    assert compiled(Settings(serial=SerialSettings(hooks=("*",)))) is not layer
    assert compiled(Settings(env=EnvSettings(allow_for={"a:b:c:d": ("X",)}))) is not layer


def test_what_nobody_holds_is_let_go(make_hook: MakeHook, load: Load) -> None:
    compiler, policy = LayerCompiler(), Policy(Settings())
    compiler.compile([load(make_hook("a"))], policy)
    gc.collect()

    assert not compiler._layers
    assert not compiler._parts


def test_a_report_counts_the_hooks_that_can_run(make_hook: MakeHook, load: Load) -> None:
    source = load(
        make_hook("a"),
        make_hook("off", inactive="off"),
        make_hook("gone", fault="no"),
        make_hook("end", event=EventName.SESSION_END),
        name="mine",
        path="/etc/mine.json",
    )

    (report,) = LayerCompiler().compile([source], Policy(Settings())).sources

    assert report.hooks == 2
    assert (report.name, report.path, report.state) == ("mine", "/etc/mine.json", SourceState.LOADED)


def test_rules_are_answered_by_every_hook_that_is_there(make_hook: MakeHook, load: Load) -> None:
    settings = Settings(
        guard=(GuardSettings(hooks="*:off"), GuardSettings(hooks="*:gone"), GuardSettings(hooks="*")),
        serial=SerialSettings(hooks=("*:none",)),
    )
    source = load(
        make_hook("off", inactive="off"),
        make_hook("gone", fault="no"),
        make_hook("end", event=EventName.SESSION_END),
    )

    (part,) = LayerCompiler().compile([source], Policy(settings)).parts

    before, end = EventName.TOOL_BEFORE, EventName.SESSION_END
    assert part.answers == ({before}, {before}, {before, end}, set())
    assert [hook.path for hook in part.hooks] == ["off", "gone", "end"]
