"""Secrets do not pass; ordinary code does."""

from __future__ import annotations

import base64
import hashlib
import random
import string
import uuid

import pytest

from ngram_cache.file_names import FileKind, is_in_secret_folder, is_secret_path, kind_of
from ngram_cache.redaction import blank_secrets, has_private_key, looks_random
from ngram_cache.snapshot import rules_fingerprint

_WORD = string.ascii_letters + string.digits
_LOWER = string.ascii_lowercase + string.digits
_HEX = "0123456789abcdef"


def drawn(alphabet: str, length: int, seed: int = 0) -> str:
    generator = random.Random(f"{alphabet}{length}{seed}")  # noqa: S311  the same secrets every time
    return "".join(generator.choices(alphabet, k=length))


SECRETS = {
    "cloud id": "AKIA" + drawn(string.ascii_uppercase + "234567", 16),
    "cloud key": drawn(_WORD + "/+", 40),
    "forge token": "ghp_" + drawn(_WORD, 36),
    "fine forge token": "github_pat_" + drawn(_WORD, 22) + "_" + drawn(_WORD, 59),
    "other forge": "glpat-" + drawn(_WORD, 20),
    "chat": "xoxb-" + drawn("0123456789", 12) + "-" + drawn(_WORD, 24),
    "payments": "sk_live_" + drawn(_WORD, 24),
    "maps": "AIza" + drawn(_WORD + "-_", 35),
    "models": "sk-proj-" + drawn(_WORD, 48),
    "other models": "sk-ant-api03-" + drawn(_WORD + "-_", 60),
    "hub": "hf_" + drawn(string.ascii_letters, 34),
    "packages": "npm_" + drawn(_WORD, 36),
    "other packages": "pypi-AgEIcHlwaS5vcmc" + drawn(_WORD + "-_", 60),
    "mail": "SG." + drawn(_WORD, 22) + "." + drawn(_WORD, 43),
    "phone": "AC" + drawn(_HEX, 32),
    "bot": drawn("123456789", 9) + ":AA" + drawn(_WORD + "-_", 33),
    "web token": ".".join(["eyJ" + drawn(_WORD, 30), "eyJ" + drawn(_WORD, 60), drawn(_WORD + "-_", 43)]),
    "uuid": str(uuid.UUID(drawn(_HEX, 32, seed=1))),
    "hash": drawn(_HEX, 64),
    "short hash": drawn(_HEX, 32),
    "base64": base64.b64encode(hashlib.sha384(b"x").digest()).decode(),
    "base36": drawn(_LOWER, 32),
}

PLACES = [
    'key = "{}"',
    "key = '{}'  # do not share",
    "{}",
    '{{"value": "{}", "n": 1}}',
    "export THING={}",
    "url: https://host.example/path?sig={}",
    "client.connect(host, '{}', retries=3)",
]


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("place", PLACES)
def test_a_key_in_a_text_is_taken_out(name: str, place: str) -> None:
    secret = SECRETS[name]
    blanked = blank_secrets(f"before\n{place.format(secret)}\nafter\n")
    assert not any(secret[at : at + 12] in blanked for at in range(len(secret) - 11))
    assert blanked.count("\n") == 3
    assert blanked.startswith("before\n")
    assert blanked.endswith("\nafter\n")


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ('password = "tulip"', "tulip"),
        ("PASSWORD: str = 'correct horse battery'", "correct horse"),
        ('db_password="Tr0ub4dor&3"', "Tr0ub4dor"),
        ('"passwd": "hunter2x"', "hunter2x"),
        ("client_secret => 'mango-tree-99'", "mango-tree"),
        ("DATABASE_PASSWORD=winter2024!", "winter2024"),
        ("API_TOKEN=abc123def456", "abc123def456"),
        ('config["api_key"] = "zx81-spectrum"', "zx81"),
        ("postgres://admin:sw0rdfish@db.example/main", "sw0rdfish"),
        ("https://user:tok3n-x@git.example/repo.git", "tok3n-x"),
        ("https://mango7tree:x-oauth-basic@git.example/repo.git", "mango7"),
        ("curl -s \\\n  -u bob:tulip9 https://host.example", "tulip9"),
        ("curl --user bob:'tulip9' https://host.example", "tulip9"),
        ("curl --user mango7tree:'tulip9' https://host.example", "mango7"),
        ('api_token = "8195513847023883"', "81955"),
        ("enable secret 8 $8$tulipMANGOxy12$tulipMANGOxy12", "tulip"),
        ("Authorization: Bearer abcd.efgh-1234", "abcd.efgh"),
        ('headers = {"Authorization": "Basic dXNlcjpwYXNz"}', "dXNlcjpwYXNz"),
        ("accessKey: `mellon12`", "mellon12"),
        ('secret := "open-sesame"', "open-sesame"),
    ],
)
def test_the_value_of_a_telling_name_is_taken_out(line: str, secret: str) -> None:
    blanked = blank_secrets(f"x = 1\n{line}\ny = 2\n")
    assert secret not in blanked
    assert blanked.startswith("x = 1\n")
    assert blanked.endswith("\ny = 2\n")


@pytest.mark.parametrize(
    "line",
    [
        "def test_issue_15337_f95_f2py():",
        "class HiggsAudioV2TokenizerModel(PreTrainedModel, GenerationMixin):",
        "from transformers import DataCollatorForSeq2Seq, AutoModelForCausalLM",
        "return self.tokenizer.convert_tokens_to_ids(tokens)",
        "token = next_token",
        "password = getpass.getpass()",
        'password = "{}".format(value)',
        "token: str = field(default_factory=str)",
        'parser.add_argument("--password-file", help="where the password lies")',
        'pad_token = "<pad>"',
        'checkpoint = "facebook/wav2vec2-base-960h"',
        "value = 3.14159265358979323846264338327950288",
        "if author == previous_author: continue",
        "HTTP_404_NOT_FOUND = 404",
        "(setq-default eglot-workspace-configuration '(:multiline never))",
        "https://docs.example.org/en/latest/user_guide/introduction.html",
        "abcdefghijklmnopqrstuvwxyz",
        "--------------------------------------------------------------------------------",
        "request_id = decade-facade-efface-added-faded-abed",
        "import_module_from_file_location(spec_from_file_location(module_name2, path))",
    ],
)
def test_ordinary_code_is_left_as_it_is(line: str) -> None:
    assert blank_secrets(line) == line


@pytest.mark.parametrize(
    ("alphabet", "share"), [(_WORD, 0.95), (_WORD + "+/", 0.95), (_LOWER, 0.93), (_HEX, 0.99)]
)
def test_nearly_all_random_strings_are_seen(alphabet: str, share: float) -> None:
    seen = sum(looks_random(drawn(alphabet, 32, seed)) for seed in range(500))
    assert seen >= share * 500


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_private_keys_are_seen(kind: str) -> None:
    assert has_private_key(f'key = """-----BEGIN {kind}PRIVATE KEY-----\nMII')
    assert not has_private_key(f"-----BEGIN {kind}PUBLIC KEY-----\nMII")


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".env.local", "app/.env.production", "prod.env", "deploy/server.pem", "x/private.key",
        "id_rsa", "home/id_ed25519.pub", "a.p12", "b.pfx", "c.jks", "d.keystore", ".netrc", ".npmrc",
        ".pypirc", "credentials", "credentials.json", "config/credentials.yml", "gcp-credentials.json",
        "client_secret_1.json", "secrets.yaml", "k8s/db-secret.yaml", ".aws/config", "u/.ssh/config",
        ".gnupg/x.txt", ".kube/config", "main.tfvars", "x/terraform.tfstate", "terraform.tfstate.backup",
        "kubeconfig", ".htpasswd", "service-account.json", "my-service-account-prod.json",
        "secrets/notes.txt", ".secrets/tool.py", "SECRETS.YML", "Server.PEM", "secrets.md", "wp-config.php",
        ".env.php", ".env.ts", ".env.example.bak", "example.env", ".ssh/.env.sample",
         ".ssh/helper.sh", "secrets/token.json", "src/credentials/prod.yaml",
        "secret.xml",
        "passwords.txt", "kubeconfig.yaml", "pgpass.conf", "vault_pass.txt", "app-secrets.properties",
        "wg0.conf", "gha-creds-0123.json", "auth.json", "db_passwords.csv", "deploy/.vault_pass",
        "prod.secrets.toml",
        "dev-kubeconfig.yml", "rootkey.csv", "etc/shadow", "server-private-key.txt", "home.nmconnection",
    ],
)  # fmt: skip
def test_files_of_secrets_are_known_by_name(path: str) -> None:
    assert is_secret_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "secrets.py",
        "src/secrets/vault.go",
        "environment.py",
        "key.py",
        "keys.ts",
        "credentials.py",
        "src/credentials/Form.tsx",
        "secret.vue",
        "include/secrets.h",
        "Secrets/Vault.php",
        "credentials/Store.swift",
        "secrets.scss",
        "app/secrets/index.svelte",
        "secret-manager.ex",
        "client_secret.dart",
        "secrets.scala",
        "db_credentials.pl",
        "README.md",
        "docs/password-reset.md",
        "guide-to-secrets.md",
        "author.json",
        "shadow.css",
        "tokens.json",
        ".env.example",
        "app/.env.local.SAMPLE",
        ".env.template",
        ".env.dist",
    ],
)
def test_source_about_secrets_is_no_secret(path: str) -> None:
    assert not is_secret_path(path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.PY", FileKind.SOURCE), ("Makefile", FileKind.SOURCE), ("a.json", FileKind.DATA),
        ("uv.lock", FileKind.GENERATED),
        ("package-lock.json", FileKind.GENERATED), ("x.min.js", FileKind.GENERATED),
        ("photo.png", FileKind.UNKNOWN),
        ("tool", FileKind.UNKNOWN),
    ],
)  # fmt: skip
def test_kinds_of_files_are_known_by_name(name: str, kind: FileKind) -> None:
    assert kind_of(name) is kind


@pytest.mark.parametrize(
    ("path", "is_secret"),
    [
        ("/home/bob/.ssh/", True),
        ("/home/bob/.AWS/deep/", True),
        ("/home/bob/secrets/", False),
        ("/a/.ssh", False),
    ],
)
def test_folders_that_hold_nothing_but_secrets_are_known(path: str, *, is_secret: bool) -> None:
    assert is_in_secret_folder(path) is is_secret


def test_the_fingerprint_names_the_rules() -> None:
    assert rules_fingerprint() == rules_fingerprint()
    assert len(rules_fingerprint()) == 64
