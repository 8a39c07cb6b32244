"""Secrets that have a form of their own: keys of services, recovery phrases, manifests of Kubernetes.

The forms are facts that the services publish; which ones matter follows the rule sets of gitleaks (MIT) and
detect-secrets (Apache-2.0). The patterns are written for this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ngram_cache.redaction.rule import Span
from ngram_cache.redaction.values import looks_random

_ID = "[A-Za-z0-9]"
_URL = r"[A-Za-z0-9_\-]"
# Each form by its service: a pattern without a repeat that has no bound.
FORMS: dict[str, str] = {
    "aws": r"(?<![A-Za-z0-9])(?:A3T[A-Z0-9]|AKIA|ASIA|AGPA|AIDA|AROA|ABIA|ACCA)[A-Z0-9]{12,40}+",
    "github": rf"gh[pousr]_{_ID}{{20,255}}+",
    "github, fine-grained": r"github_pat_[A-Za-z0-9_]{20,255}+",
    "gitlab": r"(?<![A-Za-z0-9])gl(?:pat|rt|rtr|dt|ptt|soat|cbt|ft|imt|agent|oas|ffct)-"
    rf"{_URL}{{16,255}}(?:\.[a-z0-9.]{{5,24}})?",
    "slack": r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9\-]{8,255}+",
    "slack, app": r"xapp-[A-Za-z0-9\-]{8,255}+",
    "slack, webhook": r"hooks\.slack\.com/[A-Za-z0-9/_\-]{1,255}+",
    "discord, webhook": r"discord(?:app)?\.com/api/webhooks/[A-Za-z0-9_/\-]{1,255}+",
    "discord, bot": r"(?<![A-Za-z0-9])[MNO][A-Za-z0-9_\-]{22,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,45}+",
    "teams, webhook": r"office\.com/webhook[A-Za-z0-9_/\-@]{1,255}+",
    "stripe": rf"(?:sk|pk|rk|wk)_(?:live|test|prod)_{_ID}{{8,255}}+",
    "stripe, webhook": r"whsec_[A-Za-z0-9+/=]{8,255}+",
    "google": rf"AIza{_URL}{{20,100}}+",
    "google, oauth": rf"(?:GOCSPX-{_URL}{{10,100}}+|ya29\.[0-9A-Za-z_\-.]{{8,512}}+)",
    "openai, anthropic": rf"(?<![A-Za-z0-9])sk-(?:(?:proj|svcacct|admin|ant|or|None)-)?{_URL}{{20,255}}+",
    "hugging face": rf"hf_{_ID}{{20,100}}+",
    "replicate, groq, xai": rf"(?<![A-Za-z0-9])(?:r8_|gsk_|xai-){_ID}{{20,100}}+",
    "npm": rf"npm_{_ID}{{20,100}}+",
    "pypi": rf"pypi-{_URL}{{16,1024}}+",
    "rubygems": r"rubygems_[0-9a-f]{20,100}+",
    "docker hub": rf"dckr_pat_{_URL}{{16,100}}+",
    "sendgrid": rf"SG\.{_URL}{{16,100}}(?:\.{_URL}{{16,100}}|[=_.\-A-Za-z0-9]{{32,64}})",
    "mailgun, mailchimp": r"(?:key-[0-9a-f]{24,100}+|[0-9a-f]{32}-us[0-9]{1,2})",
    "twilio": r"(?<![A-Za-z0-9])(?:AC|SK)[0-9a-f]{32}",
    "telegram": rf"(?<![0-9])[0-9]{{8,10}}:AA{_URL}{{30,64}}+",
    "web token": rf"eyJ{_URL}{{8,8192}}\.{_URL}{{4,8192}}(?:\.{_URL}{{0,8192}}+)?",
    "azure, account": r"AccountKey=[A-Za-z0-9+/=]{20,200}+",
    "azure, client": r"(?<![A-Za-z0-9])[A-Za-z0-9_\-.]{3}[0-9]Q~[A-Za-z0-9_\-.~]{31,36}+",
    "vault": rf"hv[sbr]\.{_URL}{{20,255}}+",
    "doppler": rf"dp\.[a-z]{{2,8}}\.{_ID}{{20,100}}+",
    "digitalocean": r"do[opr]_v1_[a-f0-9]{20,100}+",
    "shopify": r"shp[a-z]{2}_[a-fA-F0-9]{16,100}+",
    "square": rf"sq0[a-z]{{3}}-{_URL}{{20,100}}+",
    "atlassian": rf"AT(?:ATT|CTT|BB)[A-Za-z0-9]{_URL}{{20,255}}(?:=[A-F0-9]{{0,8}})?",
    "linear": rf"lin_api_{_ID}{{20,100}}+",
    "postman": r"PMAK-[0-9a-f\-]{30,100}+",
    "new relic": r"NRAK-[A-Z0-9]{20,60}+",
    "notion": rf"(?:(?<![A-Za-z0-9_])secret_|ntn_){_ID}{{32,60}}+",
    "airtable": rf"(?<![A-Za-z0-9])pat{_ID}{{14}}\.[0-9a-f]{{40,80}}+",
    "grafana, databricks": rf"(?:glsa_{_ID}{{20,60}}\w{{0,12}}|dapi[0-9a-f]{{32}})",
    "alibaba": r"(?<![A-Za-z0-9])LTAI[A-Za-z0-9]{12,40}+",
    "1password": r"(?<![A-Za-z0-9])A3-[A-Z0-9]{6}-[A-Z0-9]{6,12}(?:-[A-Z0-9]{5,6}){3,4}",
    "bedrock": r"ABSK[A-Za-z0-9+/]{40,255}={0,2}",
    "openshift": r"(?<![A-Za-z0-9])sha256~[A-Za-z0-9_\-]{20,100}+",
    # PlanetScale, Duffel, Shippo, Sourcegraph, Hugging Face; Brevo, Frame.io, Heroku, Intra42.
    "prefixed": r"(?<![A-Za-z0-9])(?:(?:pscale_(?:pw|tkn|oauth)|(?:duffel|shippo)_(?:test|live)|sgp"
    r"(?:_local)?|api_org)_|(?:xkeysib|xsmtpsib|fio-u|HRKU|s-s4t2(?:ud|af))-)[A-Za-z0-9_=.\-]{16,255}+",
    "age": r"AGE-SECRET-KEY-1[A-Z0-9]{20,100}+",
}  # fmt: skip
KNOWN = re.compile("|".join(FORMS.values()))

_NUM_WORDS = frozenset({12, 15, 18, 21, 24})
_PHRASE = re.compile(
    r"(?:^[ \t]{0,40}+(?:[#*/>\-]{1,3}[ \t]{1,4})?|[\"'`=:][ \t]{0,4}+)"
    r"(?P<words>(?:[a-z]{3,8}+[ ,][ ]?){11,23}+[a-z]{3,8}+)(?=[ \t]*+(?:[\"'`.;,)<\\]|$))",
    re.MULTILINE,
)
# Words of sentences that no wallet's list has.
_SENTENCE = re.compile(
    r"\b(?:the|and|for|not|are|was|were|from|has|its|your|our|but|which|should|could|does)\b"
)
_MANIFEST = re.compile(r"\bkind[\"']?[ \t]{0,8}+:\s{0,8}+[\"']?[Ss]ecret(?![A-Za-z])")
_END = re.compile(r"^---", re.MULTILINE)
# The values in braces, or lines as far in as the first of them or further, with blank ones between.
_DATA = re.compile(
    r"(?:(?<=[\s{,\"'])|\A)(?P<name>data|stringData)[\"']?[ \t]{0,8}+:(?:\s{0,80}+\{(?P<flow>(?:[^{}\"']++"
    r"|\"(?:[^\"\\\n]|\\[^\n]){0,65536}+\"|'[^'\n]{0,65536}+'){0,16384}+)|[ \t\r]{0,60}+(?P<lines>"
    r"(?:\n[ \t\r]{0,60}+(?=\n)){0,16}+\n(?P<indent>[ \t]{1,60}+)[^\n]{1,65536}+"
    r"(?:\n(?:(?P=indent)[^\n]{0,65536}+|[ \t\r]{0,60}+(?=\n))){0,16384}+))"
)
_JOINED = re.compile(
    r"(?P<mark>[\"'`])(?P<first>[\w\-+/=.]{4,200}+)(?P=mark)"
    r"(?:\s{0,40}+(?:[+.\\]\s{0,40}+)?(?P=mark)[\w\-+/=.]{4,200}+(?P=mark)){1,8}+"
)
_PIECE = re.compile(r"[\w\-+/=.]{4,}+")


def find_phrases(text: str) -> Iterator[Span]:
    """Yield the spans of recovery phrases of wallets: lines of 12 to 24 plain words."""
    for found in _PHRASE.finditer(text):
        words = found["words"].replace(",", " ").split()
        is_phrase = len(words) in _NUM_WORDS and len(set(words)) > len(words) - 3
        if is_phrase and not _SENTENCE.search(found["words"]):
            yield found.span("words")


def is_manifest(text: str) -> bool:
    """Whether a text has a Secret of Kubernetes, whose values look like any others."""
    return "ecret" in text and _MANIFEST.search(text) is not None


def find_manifests(text: str) -> Iterator[Span]:
    """Yield the spans of all values of Secrets, wherever in its YAML document a Secret is called one."""
    if "data" not in text and "stringData" not in text:
        return
    begin, has_any = 0, is_manifest(text)
    if not has_any and "stringData" not in text:
        return
    for end in [*(found.start() for found in _END.finditer(text)), len(text)]:
        is_secret = has_any and _MANIFEST.search(text, begin, end) is not None
        for found in _DATA.finditer(text, begin, end):
            if is_secret or found["name"] == "stringData":
                yield found.span("flow" if found["flow"] else "lines")
        begin = end


def find_joined(text: str) -> Iterator[Span]:
    """Yield the spans of tokens that are split into several literals."""
    for found in _JOINED.finditer(text):
        pieces = [piece.span() for piece in _PIECE.finditer(text, *found.span())]
        joined = "".join(text[start:end] for start, end in pieces)
        if KNOWN.search(joined) or looks_random(joined):
            yield from pieces
