"""YAML that remembers where everything stands: the same tree of nodes as `json_document` makes of JSON.

What a plain scalar means is decided by PyYAML's own safe loader, which is what the Chrys reference reads with: YAML
1.1, so `on` is a boolean, `010` is eight and `1e3` is a string. The text is taken as a stream of events and put
together here, over an explicit stack: nothing recurses, and nodes, depth and what aliases expand to are bounded.

Where a safe loader would give up at the first bad value, reading goes on, and every bad value is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from hooksd.dialects.document_text import cut
from hooksd.dialects.json_document import MAX_DEPTH, MAX_VALUES, JsonNode, kind_of as json_kind_of


if TYPE_CHECKING:
    import yaml


__all__ = ["YamlFault", "YamlText", "kind_of", "parse_yaml"]

_TAG = "tag:yaml.org,2002:"
_STRING = _TAG + "str"
_MERGE = _TAG + "merge"

_NOT_PRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""What no YAML text may contain."""

_HINTS = {
    "mapping values are not allowed in this context": "a value with `: ` in it must be quoted; or the indentation is wrong",
    "found character that cannot start any token": "indent with spaces, not tabs, and quote values that begin with @, ` or %",
    "did not find expected key": "the indentation differs from the line before, or a quote is not closed",
    "could not find expected ':'": "a key needs `: ` after it",
    "found undefined tag handle": "quote values that begin with !",
    "did not find expected <document start>": "a document ended before this line",
}


class YamlFault(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong with a text, and where, in characters from its start."""

    offset: int
    message: str
    hint: str | None = None


class YamlText(msgspec.Struct, frozen=True, kw_only=True):
    """What a text is.

    Attributes:
        root: Its value; None for a text without one, and for one that is no YAML. Where values are bad, what stands in
            their place means nothing.
        faults: What is wrong, in the order of the text; with any of them the text cannot be used.
    """

    root: JsonNode | None
    faults: tuple[YamlFault, ...]


def parse_yaml(text: str) -> YamlText:
    """Read a text that is to hold one YAML document; never raises.

    Duplicate keys are kept count of in the nodes, and the first one counts, as with `parse_json`. Values that aliases
    stand for are shared between nodes.
    """
    bad = _NOT_PRINTABLE.search(text)
    if bad is not None:
        message = f"the character U+{ord(bad[0]):04X}, which YAML does not allow"
        return YamlText(root=None, faults=(YamlFault(offset=bad.start(), message=message),))
    import yaml  # only who has YAML files pays for it

    builder = _Builder(_scalars())
    # Without libyaml the same events come from Python code, slowly.
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        builder.faults.append(_syntax_fault(text, error))
    except _Stopped as stopped:
        builder.faults.append(stopped.fault)
    return YamlText(root=builder.root, faults=tuple(sorted(builder.faults, key=lambda fault: fault.offset)))


def kind_of(node: JsonNode) -> str:
    """What kind of value it is, in the words of YAML."""
    match node.value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case date():
            return "a date"
        case bytes():
            return "binary data"
        case _:
            return json_kind_of(node)


class _Stopped(Exception):
    """The text cannot be read any further."""

    def __init__(self, offset: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.fault = YamlFault(offset=offset, message=message, hint=hint)


class _Anchored(msgspec.Struct):
    """What an anchor stands for: a finished node, how many values it has and how deep it is."""

    node: JsonNode
    values: int
    height: int


class _Open:
    """A collection that has begun and not ended."""

    __slots__ = ("anchor", "height", "key", "key_offset", "merged", "merging", "node", "values_before")

    def __init__(self, node: JsonNode, anchor: str | None, values_before: int) -> None:
        self.node = node
        self.anchor = anchor
        self.values_before = values_before
        self.height = 1
        self.key: str | None = None
        self.key_offset = 0
        self.merging = False
        self.merged: list[dict[str, JsonNode]] = []


class _Builder:
    """Puts the events of one text together."""

    def __init__(self, scalars: _Scalars) -> None:
        self._scalars = scalars
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._unfinished: set[str] = set()
        self._values = 0
        self.root: JsonNode | None = None
        self.faults: list[YamlFault] = []

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        import yaml

        offset = 0 if event.start_mark is None else event.start_mark.index
        match event:
            case yaml.ScalarEvent():
                self._count(1, 0, offset)
                tag, value = self._scalar(event, offset)
                node = JsonNode(value, offset, offset)
                if event.anchor is not None:
                    self._check_anchor(event.anchor, offset)
                    self._anchors[event.anchor] = _Anchored(node, 1, 0)
                self._place(node, tag, 0)
            case yaml.MappingStartEvent():
                self._begin(event, "map", JsonNode({}, offset, offset))
            case yaml.SequenceStartEvent():
                self._begin(event, "seq", JsonNode([], offset, offset))
            case yaml.CollectionEndEvent():
                self._end()
            case yaml.AliasEvent():
                self._alias(event.anchor or "", offset)
            case yaml.DocumentStartEvent() if self.root is not None:
                raise _Stopped(
                    offset, "a second document begins here", "a hooks file is one document: remove the `---`"
                )
            case _:
                pass

    def _count(self, values: int, height: int, offset: int) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise _Stopped(offset, f"more than {MAX_VALUES} values, counting what aliases stand for")
        if len(self._open) + height > MAX_DEPTH:
            raise _Stopped(offset, f"nested deeper than {MAX_DEPTH} levels")

    def _scalar(self, event: yaml.ScalarEvent, offset: int) -> tuple[str, Any]:
        tag = self._scalars.tag_of(event)
        if tag in (_STRING, _MERGE):
            return tag, event.value
        construct = self._scalars.constructors.get(tag)
        if construct is None:
            message = f"the tag {cut(tag.removeprefix(_TAG))} means nothing here"
            self._fault(offset, message, "leave it out, or quote the value")
            return tag, None
        try:
            return tag, construct(event.value)
        except (ValueError, OverflowError) as error:
            what = tag.removeprefix(_TAG)
            self._fault(
                offset, f"this is read as {what}, and is none ({cut(str(error))})", "quote it if it is a text"
            )
            return tag, None

    def _begin(
        self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent, kind: str, node: JsonNode
    ) -> None:
        self._count(1, 1, node.offset)
        if event.tag not in (None, "!", _TAG + kind):
            tag = cut(event.tag.removeprefix(_TAG))
            self._fault(node.offset, f"the tag {tag} means nothing here", "leave it out")
        if event.anchor is not None:
            self._check_anchor(event.anchor, node.offset)
            self._unfinished.add(event.anchor)
        self._open.append(_Open(node, event.anchor, self._values - 1))

    def _end(self) -> None:
        ended = self._open.pop()
        for merged in reversed(ended.merged):
            for key, node in merged.items():
                ended.node.value.setdefault(key, node)
        if ended.anchor is not None:
            self._unfinished.discard(ended.anchor)
            self._anchors[ended.anchor] = _Anchored(
                ended.node, self._values - ended.values_before, ended.height
            )
        self._place(ended.node, "", ended.height)

    def _check_anchor(self, anchor: str, offset: int) -> None:
        if anchor in self._anchors or anchor in self._unfinished:
            self._fault(offset, f"there are two anchors &{cut(anchor)}", "give each a name of its own")

    def _alias(self, anchor: str, offset: int) -> None:
        anchored = self._anchors.get(anchor)
        if anchored is None:
            name = cut(anchor)
            if anchor in self._unfinished:
                raise _Stopped(offset, f"*{name} stands for something that it is a part of", "write it out")
            raise _Stopped(offset, f"there is no anchor &{name} before this alias", "define it first")
        self._count(anchored.values, anchored.height, offset)
        node = anchored.node
        tag = "" if isinstance(node.value, (dict, list)) else _STRING
        self._place(JsonNode(node.value, node.offset, offset, node.duplicates), tag, anchored.height)

    def _place(self, node: JsonNode, tag: str, height: int) -> None:
        """Put a finished value where it belongs: a document, a list, or a mapping, as key or as value."""
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        parent.height = max(parent.height, height + 1)
        siblings = parent.node.value
        if type(siblings) is list:
            siblings.append(node)
        elif parent.key is None:
            parent.key, parent.key_offset = self._key(node), node.key_offset
            parent.merging = tag == _MERGE
        elif parent.merging:
            self._merge(parent, node)
            parent.key = None
        else:
            node.key_offset = parent.key_offset
            if siblings.setdefault(parent.key, node) is not node:
                if parent.node.duplicates is None:
                    parent.node.duplicates = []
                parent.node.duplicates.append((parent.key, parent.key_offset))
            parent.key = None

    def _key(self, node: JsonNode) -> str:
        if isinstance(node.value, str):
            return node.value
        kind = kind_of(node)
        self._fault(node.key_offset, f"a key must be a string; this one is read as {kind}", "quote it")
        # It stands for itself in nobody's way: no known key has a NUL in it.
        return f"\0{node.key_offset}"

    def _merge(self, parent: _Open, node: JsonNode) -> None:
        """Take in `<<: *other`: what is written here counts, then the first of the merged mappings that has the key."""
        merged = node.value if type(node.value) is list else [node]
        if all(type(one.value) is dict for one in merged):
            parent.merged += [one.value for one in reversed(merged)]
        else:
            self._fault(
                node.key_offset, "`<<` merges a mapping or a list of mappings", "name an anchor of a mapping"
            )

    def _fault(self, offset: int, message: str, hint: str | None = None) -> None:
        self.faults.append(YamlFault(offset=offset, message=message, hint=hint))


class _Scalars(msgspec.Struct, frozen=True, kw_only=True):
    """PyYAML's rules for scalars.

    Attributes:
        tag_of: The tag of a scalar, given or found out.
        constructors: For each tag but that of strings, what makes a value of the text; ValueError or OverflowError
            when it cannot.
    """

    tag_of: Callable[[yaml.ScalarEvent], str]
    constructors: Mapping[str, Callable[[str], Any]]


@cache
def _scalars() -> _Scalars:
    import yaml

    resolver = yaml.resolver.Resolver()
    constructor = yaml.constructor.SafeConstructor()

    def tag_of(event: yaml.ScalarEvent) -> str:
        if event.tag is not None and event.tag != "!":
            return str(event.tag)
        return str(resolver.resolve(yaml.ScalarNode, event.value, event.implicit))  # type: ignore[no-untyped-call]

    def constructing(kind: str) -> Callable[[str], Any]:
        construct = yaml.constructor.SafeConstructor.yaml_constructors[_TAG + kind]

        def from_text(text: str) -> Any:
            try:
                return construct(constructor, yaml.ScalarNode(_TAG + kind, text))
            except (KeyError, AttributeError, IndexError, yaml.constructor.ConstructorError) as error:
                # An explicit tag on a text that has not the form of its kind.
                raise ValueError(f"not the form of {kind}") from error

        return from_text

    kinds = ("null", "bool", "int", "float", "binary", "timestamp")
    return _Scalars(tag_of=tag_of, constructors={_TAG + kind: constructing(kind) for kind in kinds})


def _syntax_fault(text: str, error: yaml.MarkedYAMLError) -> YamlFault:
    message = f"not YAML: {error.problem}"
    if error.context and error.context_mark is not None:
        line = text.count("\n", 0, error.context_mark.index) + 1
        message += f" ({error.context}, which began in line {line})"
    return YamlFault(
        offset=0 if error.problem_mark is None else error.problem_mark.index,
        message=message,
        hint=_HINTS.get(error.problem or ""),
    )
