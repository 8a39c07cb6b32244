"""`slipstream serve --http` as its clients meet it, on a host with a scripted engine: it answers a line with
itself and `!`, and `slow` after a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from completion_engine.prompting.tokenizer import load_tokenizer
from lsp_server.protocol.reasons import REASONS
from lsp_server.sharing import relay
from tests.conftest import write_tiny_tokenizer
from tests.faults.fairness import environment
from tests.hosts import Hosts, own_hosts
from tests.http_clients import COMMAND, PATIENCE_S, HttpClient, http_process
from tests.remote_server import RemoteServer
from tests.waiting import pauses
from tests.windows import window_at_host

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN_FILE = Path("slipstream") / "http-token"
BEFORE, AFTER = "def one(value):\n    return value\n\n\nvalue = ", "\n\n\ndef two():\n    pass\n"
ANSWER = "value = !"
FIELDS = {
    "prompt_n", "prompt_ms", "prompt_per_token_ms", "prompt_per_second",
    "predicted_n", "predicted_ms", "predicted_per_token_ms", "predicted_per_second",
}  # fmt: skip
FILES = {
    "known.py": "def known(value):\n    return value\n\n\nclass Known:\n    pass\n",
    ".env": "DATABASE_PASSWORD=nightingale\nDATABASE_HOST=127.0.0.1\n",
    "off.lua": "local function known_in_lua()\n  return 1\nend\n-- the end of it\n",
    ".slipstream.toml": '[languages]\nlua = false\n',
}  # fmt: skip


@asynccontextmanager
async def scripted(*arguments: str | Path) -> AsyncIterator[tuple[HttpClient, Hosts]]:
    """The server with these arguments, at a host of its own whose engine is scripted and ready."""
    relay.HOST_ARGUMENTS = ("-m", "tests.faults.host_main", "--host")
    with own_hosts() as hosts:
        env = environment(hosts)
        await (window := await window_at_host(env)).begin()
        with http_process(*arguments, env=env) as http:
            await window.close()
            yield http, hosts


async def until_ready(http: HttpClient, **headers: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        for pause_s in pauses():
            if (await http.ask("/health", **headers)).status == 200:
                return
            await asyncio.sleep(pause_s)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    for name, text in FILES.items():
        (root / name).write_text(text)
    return root


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(repository: Path) -> AsyncIterator[HttpClient]:
    async with scripted(repository) as (http, _):
        await until_ready(http)
        yield http


def infill(prefix: str = BEFORE, suffix: str = AFTER, **more: Any) -> dict[str, Any]:
    """A request as llama.vim sends it: the line of the cursor is the prompt."""
    lines, _, line = prefix.rpartition("\n")
    rest = {"input_extra": [], "n_predict": 128, "stop": [], "stream": False, "cache_prompt": True}
    whole = {"input_prefix": lines + "\n" if lines else "", "input_suffix": suffix, "prompt": line}
    return {**whole, **rest, "t_max_prompt_ms": 500, "t_max_predict_ms": 1000, **more}


QWEN = f"<|fim_prefix|>{BEFORE}<|fim_suffix|>{AFTER}<|fim_middle|>"
CHUNKS = [{"text": "def other():\n    pass\n", "time": [1, 2], "filename": "other.py"}]

# Requests as clients send them: the address, the body, and what is read back from the response.
RECORDED: dict[str, tuple[str, dict[str, Any]]] = {
    "llama.vim": ("/infill", infill(samplers=["top_k"], top_k=40, n_indent=0, input_extra=CHUNKS)),
    "llama.vscode": ("/infill", infill(n_cmpl=1, top_p=0.99, id_slot=0, input_extra=CHUNKS)),
    "Zed": (
        "/v1/completions",
        {"model": "any", "prompt": QWEN, "max_tokens": 64, "stop": ["<|endoftext|>", "[PREFIX]"]},
    ),
    "minuet": (
        "/v1/completions",
        {
            "model": "any",
            "prompt": f"# language: python\n# indentation: use 4 spaces for a tab\n{BEFORE}",
            "suffix": AFTER,
            "max_tokens": 256,
            "stream": True,
        },
    ),
    "ProxyAI": (
        "/v1/completions",
        {
            "model": "any",
            "prompt": f"<|fim_prefix|> {BEFORE} <|fim_suffix|>{AFTER} <|fim_middle|>",
            "stop": ["diff --git", "<|endoftext|>"],
            "stream": True,
            "max_tokens": 128,
        },
    ),
    "Continue": (
        "/api/generate",
        {
            "model": "any",
            "raw": True,
            "prompt": f"<|fim_prefix|># Path: app/other.py\n# pass\n# app/fresh.py\n{BEFORE}"
            f"<|fim_suffix|>{AFTER}<|fim_middle|>",
            "options": {"num_predict": 4096, "temperature": 0.01, "stop": ["<|fim_pad|>", "/src/"]},
            "keep_alive": 1800,
        },
    ),
    "a client of Ollama": ("/api/generate", {"prompt": BEFORE, "suffix": AFTER, "stream": False}),
    "a prompt in a list": ("/v1/completions", {"prompt": [BEFORE], "suffix": AFTER}),
    "a client with CRLF": ("/infill", infill(BEFORE.replace("\n", "\r\n"), AFTER.replace("\n", "\r\n"))),
}  # fmt: skip


def texts_in(path: str, body: str) -> str:
    """The text that a client puts together from a response."""
    lines = [line.removeprefix("data: ") for line in body.split("\n") if line and line != "data: [DONE]"]
    found = [json.loads(line) for line in lines]
    read = {
        "/infill": lambda each: each["content"],
        "/v1/completions": lambda each: each["choices"][0]["text"],
        "/api/generate": lambda each: each["response"],
    }
    return "".join(map(read[path], found))


@pytest.mark.parametrize("client", RECORDED)
async def test_a_recorded_request_gets_the_suggestion_in_its_own_form(client: str, http: HttpClient) -> None:
    path, body = RECORDED[client]
    found = await http.ask(path, body)
    assert (found.status, texts_in(path, found.body)) == (200, ANSWER)
    assert not found.reason
    streams = body.get("stream", path == "/api/generate")
    kinds = {"/v1/completions": "text/event-stream", "/api/generate": "application/x-ndjson"}
    assert found.headers["content-type"] == (kinds[path] if streams else "application/json")
    if streams:
        assert found.body.endswith(("data: [DONE]\n\n", '"eval_count":0}\n'))


async def test_a_client_reads_back_the_fields_that_it_names(http: HttpClient) -> None:
    names = ["content", *(f"timings/{name}" for name in FIELDS), "tokens_cached", "truncated", "unknown"]
    found = (await http.ask("/infill", infill(response_fields=names))).json
    assert found.keys() == {*names} - {"unknown"}
    assert (found["content"], found["truncated"]) == (ANSWER, False)
    whole = (await http.ask("/infill", infill())).json
    assert whole["timings"].keys() == FIELDS
    assert '"content":"' in (await http.ask("/infill", infill())).body  # what llama.vim looks for


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/infill", infill("", "", n_predict=0, input_extra=CHUNKS, response_fields=[""])),
        ("/infill", infill("slow", "", n_predict=0)),
        ("/v1/completions", {"prompt": "slow", "max_tokens": 0}),
        ("/api/generate", {"model": "any", "stream": False}),
        ("/api/generate", {"prompt": "slow", "options": {"num_predict": 0}, "stream": False}),
    ],
)
async def test_a_request_for_no_text_is_answered_at_once(path: str, body: Any, http: HttpClient) -> None:
    found = await http.ask(path, body)
    assert (found.status, found.reason) == (200, "")
    assert "!" not in found.body


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/health", {"status": "ok"}),
        ("/props", {"model_alias": "slipstream", "default_generation_settings": {"n_ctx": 0}}),
        ("/v1/models", {"object": "list"}),
        ("/api/tags", {}),
        ("/v1/models?a=b", {"object": "list"}),
    ],
)
async def test_clients_learn_what_there_is(path: str, expected: dict[str, Any], http: HttpClient) -> None:
    found = await http.ask(path)
    assert found.status == 200
    assert expected.items() <= found.json.items()


async def test_text_ends_at_the_strings_of_the_client(http: HttpClient) -> None:
    for stop in ("!", ["never", " = "]):
        found = (await http.ask("/infill", infill(stop=stop))).json
        assert found["content"] == ("value = " if stop == "!" else "value")


GOOD = {"Host": "localhost:8012", "Origin": "http://127.0.0.1:9"}
# The path, the body, headers in place of the usual ones, and the status.
REFUSED: dict[str, tuple[str, Any, dict[str, str], int]] = {
    "a page of the web": ("/infill", infill(), {"Origin": "https://example.org"}, 403),
    "a page without an origin": ("/infill", infill(), {"Origin": "null"}, 403),
    "a page whose name begins alike": ("/infill", infill(), {"Origin": "http://localhost.example.org"}, 403),
    "a page of a file": ("/infill", infill(), {"Origin": "file://"}, 403),
    "a name that leads here": ("/infill", infill(), {"Host": "example.org"}, 403),
    "a name that begins alike": ("/v1/models", None, {"Host": "127.0.0.1.example.org"}, 403),
    "no host": ("/health", None, {"Host": ""}, 403),
    "no JSON": ("/infill", b"{", {}, 400),
    "no text": ("/infill", b"\xff\xfe", {}, 400),
    "no object": ("/infill", [], {}, 400),
    "nested values": ("/infill", b"[" * 200_000, {}, 400),
    "a prompt that is none": ("/v1/completions", {"prompt": {"a": 1}}, {}, 400),
    "several prompts": ("/v1/completions", {"prompt": ["a", "b"]}, {}, 400),
    "a name that is none": ("/infill", infill(input_extra=[{"filename": 7}]), {}, 400),
    "another address": ("/v1/chat/completions", {"messages": []}, {}, 404),
    "another method": ("/infill", None, {}, 404),
    "a file": ("/../../etc/passwd", None, {}, 404),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
async def test_a_refused_request_is_told_why(name: str, http: HttpClient) -> None:
    path, body, headers, status = REFUSED[name]
    found = await http.ask(path, body, **headers)
    assert found.status == status
    assert found.json["error"]["message"].endswith(".")
    assert ANSWER not in found.body
    assert "access-control-allow-origin" not in found.headers


@pytest.mark.parametrize("strange", [
    {"input_extra": 7, "stop": {"a": 1}, "response_fields": None},
    {"input_extra": ["a", None, {"text": 9}], "stop": [None, ""], "t_max_predict_ms": "soon"},
    {"n_predict": -1, "t_max_predict_ms": -1.5},
    {"t_max_predict_ms": 10**400, "n_predict": 10**400, "prompt": "value = "},
    {"input_extra": [{"filename": "\ud800\0../../.env"}], "unknown": [1]},
    {"input_suffix": None},
])  # fmt: skip
async def test_strange_values_change_nothing(strange: dict[str, Any], http: HttpClient) -> None:
    found = await http.ask("/infill", infill(**strange))
    assert (found.status, found.json["content"]) == (200, ANSWER)


async def test_a_page_of_this_machine_is_answered(http: HttpClient) -> None:
    assert (await http.ask("/infill", infill(), **GOOD)).json["content"] == ANSWER


@pytest.mark.parametrize(("file", "rule"), [(".env", "secret-file"), ("off.lua", "language-disabled")])
async def test_the_rules_of_a_file_hold_for_its_text(file: str, rule: str, http: HttpClient) -> None:
    found = await http.ask("/infill", infill(FILES[file], ""))
    assert (found.status, found.json["content"], found.reason) == (200, "", REASONS[rule])


async def test_a_name_alone_is_enough_for_a_refusal(http: HttpClient) -> None:
    found = await http.ask("/v1/completions", {"prompt": "<|file_sep|>conf/.env.local\nPASSWORD=nigh"})
    assert (found.json["choices"][0]["text"], found.reason) == ("", REASONS["secret-file"])


async def test_a_newer_request_of_the_same_user_replaces_an_older_one(http: HttpClient) -> None:
    older = asyncio.create_task(http.ask("/infill", infill(f"{BEFORE}\nslow")))
    await asyncio.sleep(0.3)
    assert (await http.ask("/infill", infill())).json["content"] == ANSWER
    found = await older
    assert (found.status, found.reason) == (503, REASONS["superseded"])
    assert "content" not in found.json  # llama.vim would keep an empty one for this text


async def test_the_token_is_asked_for_and_only_its_user_can_read_it(repository: Path) -> None:
    async with scripted("--token", repository) as (http, hosts):
        path = hosts.folder / "XDG_STATE_HOME" / TOKEN_FILE
        token = path.read_text().strip()
        assert len(token) > 20
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for wrong in ({}, {"Authorization": f"Bearer {token[:-1]}"}, {"Authorization": token}):
            assert (await http.ask("/infill", infill(), **wrong)).status == 401
        good = {"Authorization": f"Bearer {token}"}
        await until_ready(http, **good)
        assert (await http.ask("/infill", infill(), **good)).json["content"] == ANSWER


async def test_a_host_that_is_lost_is_replaced(repository: Path) -> None:
    async with scripted(repository) as (http, hosts):
        assert (await http.ask("/infill", infill())).json["content"] == ANSWER
        os.kill(hosts.only()["pid"], signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_S):
            for pause_s in pauses():  # the next host is a real one, which has no model here
                found = await http.ask("/infill", infill())
                assert found.status == 503
                if found.reason in {REASONS["engine-loading"], REASONS["engine-error"]}:
                    break
                await asyncio.sleep(pause_s)


def write_config(env: Mapping[str, str], text: str) -> None:
    path = Path(env["XDG_CONFIG_HOME"], "slipstream", "config.toml")
    path.parent.mkdir(parents=True)
    path.write_text(text)


async def test_no_text_leaves_this_machine(repository: Path, tiny_model_dir: Path, tmp_path: Path) -> None:
    """The user's settings name a team's server: a request carries no path whose rules could allow it."""
    write_tiny_tokenizer(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    server = RemoteServer(lambda *_: [min(tokenizer.end_ids)], tokenizer.encode, num_positions=8192)
    with own_hosts() as hosts:
        env = environment(hosts)
        remote = f'[remote]\nurl = "{server.url}"\ntokenizer = "{tmp_path}"\n'
        write_config(env, f'target = "{tiny_model_dir}"\ndevice = "cpu"\neagerness = 1\n{remote}')
        with http_process(repository, env=env) as http:
            await until_ready(http)
            assert (await http.ask("/infill", infill(FILES["known.py"], ""))).json["content"]
            assert (await http.ask("/infill", infill())).json["content"]
    server.stop()
    assert not server.asked


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--http", "99999"), "99999 is not a port."),
        (("--http", "0", "/nowhere/at/all"), "There is no folder /nowhere/at/all."),
        (("--token",), "need --http"),
        (("8012",), "need --http"),
        (("--http", "{taken}"), "cannot be opened"),
    ],
)
async def test_what_cannot_be_served_is_said(arguments: tuple[str, ...], said: str, http: HttpClient) -> None:
    given = [argument.format(taken=http.port) for argument in arguments]
    with own_hosts() as hosts:
        process = await asyncio.create_subprocess_exec(
            *COMMAND[:2], *given, env=environment(hosts) | {"COLUMNS": "200"}, stderr=asyncio.subprocess.PIPE
        )
        _, error = await process.communicate()
    assert process.returncode
    assert said in error.decode()
