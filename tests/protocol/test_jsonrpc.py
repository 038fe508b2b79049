"""Lines into messages and back."""

from __future__ import annotations

import itertools
import json

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from hooksd.model.problems import ConfigProblem, Severity
from hooksd.protocol import jsonrpc
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.jsonrpc import (
    MAX_BATCH_MESSAGES,
    MAX_NESTING,
    Batch,
    Call,
    Failure,
    Notification,
    Request,
    Response,
    Success,
    encode,
    encode_batch,
    failure,
    parse,
)
from hooksd_client.wire import LineSplitter


def code(message):
    assert type(message) is Failure
    return message.error.code


# ----------------------------------------------------------------------------------------------------------------------
# Requests


def test_a_request():
    request = parse(b'{"jsonrpc": "2.0", "method": "a/b", "id": 1, "params": {"x": [1, 2]}}')

    assert type(request) is Request
    assert (request.method, request.id, bytes(request.params)) == ("a/b", 1, b'{"x": [1, 2]}')
    assert not request.is_notification


def test_a_notification():
    request = parse(b'{"jsonrpc":"2.0","method":"a"}')

    assert type(request) is Request
    assert request.is_notification
    assert bytes(request.params) == b"{}"


def test_an_id_of_null_asks_for_an_answer():
    request = parse(b'{"jsonrpc":"2.0","method":"a","id":null}')

    assert type(request) is Request
    assert request.id is None
    assert not request.is_notification


def test_members_that_are_not_known_are_passed_over():
    assert type(parse(b'{"jsonrpc":"2.0","method":"a","id":1,"extra":{"id":2}}')) is Request


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"nonsense",
        b"{'a': 1}",
        b'{"jsonrpc":"2.0","method":"a","id":1} x',
        b'{"jsonrpc":"2.0","method":"a","id":01}',
        b'{"jsonrpc":"2.0","method":"a","id":NaN}',
        b'{"jsonrpc":"1.0","method":"a", nonsense',
        b'[{"jsonrpc":"2.0","method":"a"},',
        b"[1,",
        b"[1 2]",
        b'"\xff"',
        b'{"jsonrpc":"2.0","method":"a","params":{"x":"\xff"}}',
        b'{"jsonrpc":"2.0","method":"a","params":{"\xed\xa0\x80":1}}',
        b'{"jsonrpc":"2.0","method":"a","unknown":"\xff"}',
        b"\xef\xbb\xbf{}",
        b"x" * 100_000 + b"\xff",
        "é".encode() * 50_000 + b"\xc3",
    ],
)
def test_what_is_not_json_in_utf8(line):
    message = parse(line)

    assert code(message) == ErrorCode.PARSE_ERROR
    assert message.id is None
    assert message.error.data.kind == "parse_error"


@pytest.mark.parametrize(
    ("line", "request_id", "words"),
    [
        (b"1", None, "JSON object"),
        (b'"text"', None, "JSON object"),
        (b"null", None, "JSON object"),
        (b"{}", None, "`jsonrpc`"),
        (b'{"jsonrpc":"2.0"}', None, "`method` is missing"),
        (b'{"jsonrpc":"2.0","id":3}', 3, "`method` is missing"),
        (b'{"jsonrpc":2.0,"method":"a","id":"x"}', "x", "`jsonrpc`"),
        (b'{"jsonrpc":"2.1","method":"a","id":"x"}', "x", "`jsonrpc`"),
        (b'{"method":"a","id":null}', None, "`jsonrpc`"),
        (b'{"jsonrpc":"2.0","method":null,"id":1}', 1, "`method` must be"),
        (b'{"jsonrpc":"2.0","method":["a"],"id":1}', 1, "`method` must be"),
        (b'{"jsonrpc":"2.0","method":"a","id":1.0}', None, "`id`"),
        (b'{"jsonrpc":"2.0","method":"a","id":1e2}', None, "`id`"),
        (b'{"jsonrpc":"2.0","method":"a","id":false}', None, "`id`"),
        (b'{"jsonrpc":"2.0","method":"a","id":{}}', None, "`id`"),
        (b'{"jsonrpc":"2.0","method":"a","id":' + b"9" * 5_000 + b"}", None, "`id`"),
        (b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', 1, "`method` is missing"),
        (b'{"jsonrpc":"2.0","result":1}', None, "`method` is missing"),
    ],
)
def test_json_that_is_no_request(line, request_id, words):
    message = parse(line)

    assert code(message) == ErrorCode.INVALID_REQUEST
    assert message.id == request_id
    assert words in message.error.message


def test_nesting_up_to_the_limit():
    def nested(depth):
        # The request is one level, `params` another.
        inner = depth - 2
        return b'{"jsonrpc":"2.0","method":"a","params":{"x":' + b"[" * inner + b"]" * inner + b"}}"

    request = parse(nested(MAX_NESTING))
    assert type(request) is Request
    assert msgspec.json.decode(request.params)
    assert encode(Success(id=1, result=msgspec.json.decode(request.params)))
    assert code(parse(nested(MAX_NESTING + 1))) == ErrorCode.PARSE_ERROR
    assert f"{MAX_NESTING}" in parse(nested(MAX_NESTING + 1)).error.message
    assert code(parse(b"[" * 1_000_000)) == ErrorCode.PARSE_ERROR
    assert code(parse(b'{"a":' * 100_000)) == ErrorCode.PARSE_ERROR


def test_many_brackets_are_no_deep_nesting():
    flat = b'{"jsonrpc":"2.0","method":"a","params":{"x":[' + b"[],{}," * 10_000 + b"[]]}}"
    text = b'{"jsonrpc":"2.0","method":"a","params":{"x":"' + b'[{\\"\\\\' * 10_000 + b'"}}'

    assert type(parse(flat)) is Request
    assert type(parse(text)) is Request


# ----------------------------------------------------------------------------------------------------------------------
# Responses


def test_responses():
    assert parse(b'{"jsonrpc":"2.0","id":"i","result":{"a":1}}') is not None
    good = parse(b'{"jsonrpc":"2.0","id":"i","result":{"a":1}}')
    bad = parse(b'{"jsonrpc":"2.0","id":null,"error":{"code":1}}')
    null = parse(b'{"jsonrpc":"2.0","id":7,"result":null}')

    assert type(good) is type(bad) is type(null) is Response
    assert (good.id, bytes(good.result), good.error) == ("i", b'{"a":1}', None)
    assert (bad.id, bad.result, bytes(bad.error)) == (None, None, b'{"code":1}')
    assert bytes(null.result) == b"null"


# ----------------------------------------------------------------------------------------------------------------------
# Batches


def test_a_batch_keeps_the_order():
    batch = parse(
        b' [{"jsonrpc":"2.0","method":"a","id":1}, 1, [], {"jsonrpc":"2.0","id":2,"result":0},'
        b' {"jsonrpc":"2.0","method":"b"}, {"foo":"boo"}]'
    )

    assert type(batch) is Batch
    kinds = [type(member) for member in batch.members]
    assert kinds == [Request, Failure, Failure, Response, Request, Failure]
    assert [code(batch.members[at]) for at in (1, 2, 5)] == [ErrorCode.INVALID_REQUEST] * 3


def test_an_empty_batch():
    message = parse(b" [ ] ")

    assert code(message) == ErrorCode.INVALID_REQUEST
    assert message.id is None


@pytest.mark.parametrize("member", [b"1", b'{"a":[1,2,3]}', b' \t[[1,2],"],["] ', b'"\\""'])
def test_a_batch_of_the_limit_and_one_more(member):
    most = b"[" + b",".join([member] * MAX_BATCH_MESSAGES)

    batch = parse(most + b"]")

    assert type(batch) is Batch
    assert len(batch.members) == MAX_BATCH_MESSAGES
    too_many = parse(most + b"," + member + b"]")
    assert code(too_many) == ErrorCode.INVALID_REQUEST
    assert str(MAX_BATCH_MESSAGES) in too_many.error.message


def test_a_long_batch_with_a_number_that_is_too_long_for_an_integer():
    assert code(parse(b"[" + b"9" * 5_000 + b",1" * MAX_BATCH_MESSAGES + b"]")) == ErrorCode.INVALID_REQUEST
    assert type(parse(b"[" + b"9" * 5_000 + b"]")) is Batch


def test_a_long_batch_that_is_not_json():
    assert code(parse(b"[" + b"1," * 10 + b"x" + b",1" * MAX_BATCH_MESSAGES + b"]")) == ErrorCode.PARSE_ERROR
    assert (
        code(parse(b"[" + b"1," * 10 + b"1 1" + b",1" * MAX_BATCH_MESSAGES + b"]")) == ErrorCode.PARSE_ERROR
    )


def test_a_batch_may_have_one_member_with_many_parts():
    member = b'{"jsonrpc":"2.0","method":"a","params":{"x":[' + b"1," * MAX_BATCH_MESSAGES + b"1]}}"

    batch = parse(b"[" + member + b"]")

    assert type(batch) is Batch
    assert len(batch.members) == 1


# ----------------------------------------------------------------------------------------------------------------------
# Any bytes

ATOMS = st.one_of(
    st.sampled_from(
        [
            b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u", b"d800", b" ", b"\r", b"1", b"-", b"1.5", b"null",
            b'"jsonrpc"', b'"2.0"', b'"method"', b'"id"', b'"params"', b'"result"', b'"error"', b"\xff", b"\xc3\xa9",
            b'{"jsonrpc":"2.0","method":"a"', b',"id":1', b',"params":{}', b"\xef\xbb\xbf",
        ]
    ),
    st.binary(max_size=4),
)  # fmt: skip


@given(st.lists(ATOMS, max_size=30).map(b"".join))
@settings(max_examples=500)
def test_any_line_gives_a_message(line):
    message = parse(line)

    members = message.members if type(message) is Batch else (message,)
    for member in members:
        assert type(member) in {Request, Response, Failure}
        if type(member) is Failure:
            assert json.loads(encode(member))["jsonrpc"] == "2.0"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(JSON, st.none() | st.integers() | st.text(st.characters(exclude_categories=("Cs",))))
def test_what_was_sent_comes_back(params, request_id):
    line = json.dumps({"jsonrpc": "2.0", "method": "m", "id": request_id, "params": params}).encode()

    request = parse(line)

    assert type(request) is Request
    assert request.id == request_id
    value = msgspec.json.decode(request.params)
    answer = encode(Success(id=request.id, result=value))
    assert json.loads(answer)["result"] == params
    assert json.loads(answer)["id"] == request_id


@given(
    st.lists(st.lists(ATOMS, max_size=10).map(b"".join), max_size=6),
    st.lists(st.integers(0, 80), max_size=10),
)
def test_any_cutting_gives_the_same_messages(lines, cuts):
    stream = b"\n".join(lines) + b"\n"

    def messages(pieces):
        splitter = LineSplitter(1_000)
        return [repr_of(parse(line)) for piece in pieces for line in splitter.receive_data(piece)]

    def repr_of(message):
        return msgspec.to_builtins(message) if type(message) is Failure else str(type(message))

    at = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[start:end] for start, end in itertools.pairwise(at)]

    assert messages(pieces) == messages([stream])


# ----------------------------------------------------------------------------------------------------------------------
# Answers


def test_an_answer_is_one_line():
    assert encode(Success(id="x", result={"a": "b\nc\r\x85"})) == (
        '{"jsonrpc":"2.0","id":"x","result":{"a":"b\\nc\\r\x85"}}\n'.encode()
    )


def test_an_error_has_code_message_and_data():
    problem = ConfigProblem(severity=Severity.ERROR, path="a.b", message="wrong", line=3)
    error = protocol_error(ErrorCode.CONFIG_INVALID, "no", detail="more", problems=[problem])

    answer = json.loads(encode(failure(5, error)))

    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == 5
    assert answer["error"]["code"] == -32013
    assert answer["error"]["data"]["kind"] == "config_invalid"
    assert answer["error"]["data"]["detail"] == "more"
    assert answer["error"]["data"]["problems"][0]["line"] == 3


def test_an_error_without_more_to_say_has_only_its_kind():
    answer = json.loads(encode(failure(None, protocol_error(ErrorCode.BUSY, "full", kind="max_executions"))))

    assert answer == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32003, "message": "full", "data": {"kind": "max_executions"}},
    }


def test_an_over_long_line_has_an_answer():
    answer = jsonrpc.too_long(1_024)

    assert (answer.id, answer.error.code) == (None, ErrorCode.MESSAGE_TOO_LARGE)
    assert "1024" in answer.error.message
    assert "limits.max_message_bytes" in answer.error.message


def test_calls_and_notifications():
    assert json.loads(encode(Call(id="i", method="hook/invoke", params={}))) == {
        "jsonrpc": "2.0", "id": "i", "method": "hook/invoke", "params": {}
    }  # fmt: skip
    assert json.loads(encode(Notification(method="events/event", params={"seq": 1}))) == {
        "jsonrpc": "2.0", "method": "events/event", "params": {"seq": 1}
    }  # fmt: skip


def test_lone_surrogates_do_not_keep_an_answer_back():
    result = {"\udcff": ["a\ud800b", ("\ud83d\ude00",), 1, None]}

    assert json.loads(encode(Success(id=1, result=result)))["result"] == {
        "\ufffd": ["a\ufffdb", ["\U0001f600"], 1, None]
    }


def test_what_has_no_json_form_is_an_error():
    with pytest.raises(TypeError):
        encode(Success(id=1, result=object()))


def test_the_answer_to_a_batch():
    lines = [encode(Success(id=number, result={})) for number in range(2)]

    batch = encode_batch(lines)

    assert batch.endswith(b"]\n")
    assert batch.count(b"\n") == 1
    assert [one["id"] for one in json.loads(batch)] == [0, 1]


# ----------------------------------------------------------------------------------------------------------------------
# Halves of surrogate pairs


@pytest.mark.parametrize(
    ("escaped", "means"),
    [
        (r"\ud83d", "\ufffd"),
        (r"\uDE00", "\ufffd"),
        (r"a\ud83d\n", "a\ufffd\n"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\ud83d\ude00\ude00", "\U0001f600\ufffd"),
        (r"\ude00\ud83d", "\ufffd\ufffd"),
        (r"\ud83d\\ude00", "\ufffd\\ude00"),
        (r"\\ud83d\ud83d", "\\ud83d\ufffd"),
        (r"\\\ud83d", "\\\ufffd"),
        (r"\\\\ud83d\ud83d", "\\\\ud83d\ufffd"),
        (r"\ud83d\u0041", "\ufffdA"),
    ],
)
def test_half_a_surrogate_pair_is_a_replacement_character(escaped, means):
    text = escaped.encode()
    request = parse(b'{"jsonrpc":"2.0","method":"a","id":"%s","params":{"%s":["%s"]}}' % (text, text, text))
    (member,) = parse(b'[{"jsonrpc":"2.0","id":"%s","result":"%s"}]' % (text, text)).members

    assert request.id == means
    assert msgspec.json.decode(request.params) == {means: [means]}
    assert (member.id, msgspec.json.decode(member.result)) == (means, means)


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_whatever_another_json_library_escapes_is_read(text):
    line = json.dumps({"jsonrpc": "2.0", "method": "a", "id": 1, "params": {"text": text}}).encode()
    request = parse(line)

    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert msgspec.json.decode(request.params) == {"text": whole}


@pytest.mark.parametrize(
    "line", [rb'{"a":"\ud83d"', rb'{"a":"\ud83d","b":"\q"}', rb'["\ud83d"', rb'{"\\ud83d":"\q"}']
)
def test_half_a_surrogate_pair_excuses_no_other_fault(line):
    assert code(parse(line)) == ErrorCode.PARSE_ERROR


def test_many_halves_and_backslashes_take_no_time():
    text = rb"\ud83d\\" * 500_000
    request = parse(b'{"jsonrpc":"2.0","method":"a","id":1,"params":{"a":"%s"}}' % text)

    assert msgspec.json.decode(request.params) == {"a": "\ufffd\\" * 500_000}
