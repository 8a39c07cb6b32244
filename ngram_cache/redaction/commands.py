"""Secrets in commands, addresses, queries, calls and headers. The keys of services are elsewhere."""

from __future__ import annotations

import re

from ngram_cache.redaction.rule import Judge, Rule, Shape
from ngram_cache.redaction.values import always, is_credential, is_given_password, is_no_port

_GIVEN = r"(?:(?P<mark>[\"'])(?P<quoted>(?:(?!(?P=mark))[^\n]){1,200}+)|(?P<bare>[^\s\"'|;<>]{1,200}+))"
_QUOTED = r"(?P<mark>[\"'])(?P<quoted>(?:(?!(?P=mark))[^\\\n]|\\[^\n]){1,200}+)"
_ARGUMENTS = r"[^\n|;]{0,200}?"
_ARGUMENT = r"(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|[\w.$\->]{1,60})"
_WORD = r"[^\s\"']{1,200}+"
_USER = r"[\"']?[^\s:\"']{0,60}"
_ECHOED = (
    r"echo[ \t]++(?:-n[ \t]++)?[\"']?(?:[\w.\-]{1,40}:)?"
    r"(?P<bare>[^\"'|\n]{1,100}?)[\"']?[ \t]*+\|[^|\n]{0,60}"
)
_HEX_LINES = r"(?P<bare>(?:\n[ \t]{0,40}+[0-9a-f]{2,80}+(?=\n|\Z)){1,4096}+)"


def _rule(trigger: str, ahead: str = "", behind: str = "", judge: Judge = is_given_password) -> Rule:
    shape = Shape(
        trigger.strip(),
        re.compile(ahead) if ahead else None,
        re.compile(f"(?:{behind})\\Z") if behind else None,
    )
    return Rule(trigger, (shape,), judge=judge)


COMMANDS: tuple[Rule, ...] = (
    _rule("curl ", rf"{_ARGUMENTS}(?<=\s)(?:-u|--user)[ =]{{0,2}}{_USER}:(?P<bare>{_WORD})"),
    _rule("wget ", rf"{_ARGUMENTS}--(?:http-)?password[ =]{_GIVEN}"),
    _rule("mysql", rf"[a-z]{{0,12}}[ \t]{_ARGUMENTS}(?<=\s)-p(?!ort|rotocol){_GIVEN}"),
    _rule("mariadb", rf"[a-z\-]{{0,12}}[ \t]{_ARGUMENTS}(?<=\s)-p(?!ort|rotocol){_GIVEN}"),
    _rule("sshpass", rf"[ \t]++-p[ \t]{{0,3}}{_GIVEN}"),
    _rule("redis-cli", rf"{_ARGUMENTS}(?<=\s)-a[ \t]++{_GIVEN}"),
    _rule("ldapsearch", rf"{_ARGUMENTS}(?<=\s)-w[ \t]++{_GIVEN}"),
    *(_rule(f"{tool} login", rf"{_ARGUMENTS}(?<=\s)-p[ =]{_GIVEN}")
      for tool in ("docker", "podman", "az", "oc")),
    _rule("htpasswd ", rf"-[a-zA-Z]{{0,4}}b[a-zA-Z]{{0,4}}[ \t]++{_WORD}[ \t]++{_WORD}[ \t]++{_GIVEN}"),
    _rule("-pass", r"(?:in|out)?[ \t]++[\"']?pass:(?P<bare>[^\s\"']{1,200}+)"),
    _rule("--password-stdin", behind=_ECHOED),
    _rule("sudo -s", behind=_ECHOED),
    _rule("chpasswd", behind=_ECHOED),
    _rule("convertto-securestring", rf"[ \t]++(?:-[Ss]tring[ \t]++)?{_QUOTED}"),
    _rule("identified by", rf"[ \t]++(?i:password[ \t]++)?{_QUOTED}"),
    _rule("identified with", rf"[ \t]++[\w'\"]{{1,40}}[ \t]++(?i:by)[ \t]++{_QUOTED}"),
    *(_rule(call, rf"[ \t]{{0,4}}[\"'][^\"'\n]{{0,80}}[\"'][ \t]{{0,4}},\s{{0,40}}{_QUOTED}")
      for call in ("auth=(", "auth = (", "basicauth(", "credential(", "credentials(", ".login(",
                   "authenticate(", "passwordauthentication(", "basic_auth(")),
    *(_rule(call, rf"[ \t]{{0,4}}{_ARGUMENT},\s{{0,40}}{_ARGUMENT},\s{{0,40}}{_QUOTED}")
      for call in ("getconnection(", "new pdo(", "mysqli_connect(", "new mysqli(", "psycopg2.connect(")),
    _rule("sqlplus", rf"{_ARGUMENTS}(?<=\s)\w{{1,40}}/(?P<bare>[^\s@\"']{{1,100}}+)"),
    # host:5432:database:user:tulip
    *(_rule(port, r"[\w*.\-]{0,60}:[\w*.\-]{1,60}:(?P<bare>[^\s:]{1,200}+)(?=\s|\Z)",
            r"(?:^|\n)[\w*.\-]{1,100}")
      for port in (":5432:", ":*:")),
    # ?sv=2022-11-02&sig=abc%3D
    _rule("sig=", r"(?P<bare>[A-Za-z0-9%+/_\-=]{20,400}+)", judge=is_credential),
    # postgres://app:tulip@host: the last @ ends the password
    _rule("://", r"[^\s:/@\"'<>]{0,80}+:(?P<bare>[^\s\"'<>`]{1,256})@", judge=is_no_port),
    _rule("@tcp(", behind=r"[\w.\-]{1,60}:(?P<bare>[^\s:\"']{1,80})"),
    _rule("@unix(", behind=r"[\w.\-]{1,60}:(?P<bare>[^\s:\"']{1,80})"),
    _rule("jdbc:oracle:", r"[a-z]{1,8}:[^\s/\"']{1,60}/(?P<bare>[^\s@\"']{1,100}+)@"),
    *(_rule(scheme, r"[ \t]{0,4}+(?P<bare>[A-Za-z0-9+/=_\-.~]{8,4096}+)", judge=is_credential)
      for scheme in ("bearer ", "basic ", "authorization: token ", "'token ", "\"token ")),
    *(_rule(scheme, r"(?P<bare>[A-Za-z0-9./$=,+\-]{16,400}+)", judge=always)
      for scheme in ("$apr1$", "$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$7$", "$y$", "$argon2", "{sha}",
                     "{ssha}", "pbkdf2_sha", "$pbkdf2", "$scrypt")),
    # The text after the head of a private key, up to its end.
    _rule("private key", r"(?: BLOCK)?-----(?P<bare>[^\-]{1,65536}+)", judge=always),
    _rule("putty-user-key-file-", r"(?P<bare>[^\0]{1,65536}+)", judge=always),
    _rule("$ansible_vault;", rf"[^\n]{{0,80}}+{_HEX_LINES}", judge=always),
)  # fmt: skip
