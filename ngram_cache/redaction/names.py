"""Secrets after a name, in commands, addresses, queries, calls and headers: the names and the forms.

The keys of services are in `forms`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ngram_cache.redaction.rule import LINES_BELOW, Judge, Rule, Shape
from ngram_cache.redaction.values import (
    always,
    is_credential,
    is_given_password,
    is_key,
    is_no_port,
    is_password,
    is_token,
)

# Suffixes that do not change the meaning of a name.
_REST = (
    r"(?P<rest>(?:[_\-]?(?i:[0-9]{1,3}|prod|production|dev|test|staging|live|value|default|old|new|string|text"
    r"|plain|admin|root|user|master|main|db|base64|encoded|current|again|confirmation|key|seed|s)(?![A-Za-z0-9]))?+)"
    r"(?P<more>[\w\-]{0,32}+)"
)
_QUOTED = (
    r"[rbufRBUF@$]{0,2}(?P<mark>[\"'`])(?:(?P=mark){2})?"
    r"(?P<quoted>(?:(?!(?P=mark))[^\\\n]|\\[^\n]){1,512}+)"
)
_BARE = r"(?P<bare>[^\s\"'`,;(){}\[\]<>|]{1,512}+)"
_VALUE = f"(?:{_QUOTED}|{_BARE})"
_ASSIGNS = r"(?::[ \t]{0,4}+[\w.\[\]| ]{1,30}+=(?!=)|=>|[=!]==?|[:?+|]{0,2}=|:)"
_TAGS = r"(?:[!&][\w!/.:\-]{1,40}+[ \t]{1,4}+){0,2}+"
_OPENS = rf"(?:[(\[\\][ \t]{{0,4}}+\n?|\n(?=[ \t]{{1,40}}+[\"']))?+[ \t]{{0,40}}+{_TAGS}"
_BYTES = r"(?P<quoted>(?:(?:0[xX])?[0-9a-fA-F]{1,3}[uU]?[,\s]{1,40}+){7,4096}+(?:0[xX])?[0-9a-fA-F]{0,3})"
_CELL = r"\"?[\w.\-]{1,40}+\"?"
_ROWS = r"(?P<bare>(?:\n(?=[^\n,;\t]{0,200}+[,;\t])[^\n]{1,400}+){1,4096}+)"
_CALLED = r"[\w$]\([ \t]{0,4}[\"'][\w.\-:]{0,40}"
_TAGGED = r"<[\w.:\-]{0,40}|[\"'>][\w.\-]{0,40}"
_ATTRIBUTE = r"\bvalue=([\"'])(?P<quoted>[^\"'\n]{1,80})\1[^<>\n]{0,40}\b(?:name|key|id)=[\"'][\w.\-]{0,40}"
_GAP = r"[ \t]{0,8}+"
_SPACE = r"[ \t]{1,8}+"
_MORE = r"[\w.\-]{0,32}+"  # the rest of a name
_OR = r"(?:\|\||\?\?|\?:|\bor\b|\.unwrap_or\w{0,8}+\()"
_DEFAULT = rf"\{{[^{{}}]{{0,400}}?\bdefault[ \t]{{0,16}}=[ \t]{{0,8}}{_QUOTED}"
_GIVEN = r"(?P<mark>[\"']?)(?P<quoted>(?!-)[^\s\"'<>|)\]]{1,200}+)"
_FIRST_ON_LINE = r"(?:^|\n)[ \t]*+"
_NO_LETTER = "(?![a-z])"
_KEYS = ("aes", "api", "access", "auth", "private", "signing", "encryption", "account", "master", "service",
         "shared", "storage", "session", "client", "app", "jwt", "hmac", "cookie", "license")  # fmt: skip
_BEHIND_KEY = re.compile("(?i:" + "|".join(f"(?<={kind}key)|(?<={kind}[ _-]key)" for kind in _KEYS) + ")")
_PASSWORDS = "password passwd passphrase passcode secret"
_PASSWORDS_OF = (
    "sshpass userpass dbpass storepass keypass requirepass masterauth rootpw bindpw adminpass rootpass"
)
# Passwords in German, Spanish, Portuguese, French, Dutch, Polish, Finnish, Czech, Hungarian, Swedish,
# Turkish, Russian, Chinese, Japanese and Korean. Capitals of other scripts are not lowered.
_FOREIGN = (
    "passwort kennwort contraseña contrasena senha mot_de_passe motdepasse wachtwoord hasło haslo salasana"
    " heslo jelszo lösenord losenord şifre sifre пароль Пароль 密码 密碼 口令 パスワード 비밀번호 암호"
)
_PHRASES = "mnemonic seed_phrase seedphrase recovery_phrase"
_GIVEN_TO = r"(?:(?P<mark>[\"'])(?P<quoted>(?:(?!(?P=mark))[^\n]){1,200}+)|(?P<bare>[^\s\"'|;<>]{1,200}+))"
_QUOTED_TO = r"(?P<mark>[\"'])(?P<quoted>(?:(?!(?P=mark))[^\\\n]|\\[^\n]){1,200}+)"
_ARGUMENTS = r"(?:[^\n|;\\]|\\[^|;]){0,200}?"  # also on lines that a backslash continues
_ARGUMENT = r"(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|[\w.$\->]{1,60})"
_WORD = r"[^\s\"']{1,200}+"
_USER = r"(?P<user>[\"']?[^\s:\"']{0,60}[\"']?)"
_ECHOED = (
    r"echo[ \t]++(?:-n[ \t]++)?[\"']?(?:[\w.\-]{1,40}:)?"
    r"(?P<bare>[^\"'|\n]{1,100}?)[\"']?[ \t]*+\|[^|\n]{0,60}"
)
_HEX_LINES = r"(?P<bare>(?:\n[ \t]{0,40}+[0-9a-f]{2,80}+(?=\n|\Z)){1,4096}+)"


def _shape(name: str, ahead: str, behind: str = "") -> Shape:
    return Shape(name, re.compile(ahead), re.compile(f"(?:{behind})\\Z") if behind else None)


_ASSIGNED = (
    # password: >-
    _shape("block", rf"[\w\-]{{0,32}}+[\"']?:{_GAP}[|>][+\-0-9]{{0,2}}+{_GAP}{LINES_BELOW}"),
    # password = """, and the value on the next lines
    _shape(
        "lines",
        rf"{_REST}[\"'\])]{{0,3}}+{_GAP}{_ASSIGNS}{_GAP}(?:[rbuf]{{0,2}}(?P<mark>\"\"\"|''')|@\")\s{{0,40}}+"
        r"(?P<quoted>(?:(?(mark)(?!(?P=mark))|(?!\"))[^\0]){1,400})",
    ),
    # password: "tulip, and mango" on the next line
    _shape(
        "wrapped",
        rf"{_REST}[\"']?:{_GAP}(?P<mark>[\"'])"
        r"(?P<quoted>[^\"'\n]{1,200}+(?:\n[ \t]{1,40}+[^\"'\n:]{1,200}+){1,8}+)(?P=mark)",
    ),
    # password = "tulip", db_password: tulip, password == 'tulip', passwords = ["tulip"]
    _shape("assigned", rf"{_REST}[\"'\])]{{0,3}}+[ \t]{{0,16}}+{_ASSIGNS}[ \t]{{0,16}}+{_OPENS}{_VALUE}"),
    # "{\"password\": \"tulip\"}"
    _shape("escaped", rf"{_REST}\\{{1,7}}+[\"']{_GAP}:{_GAP}\\{{1,7}}+[\"'](?P<quoted>[^\\\"'\n]{{1,400}}+)"),
    # aes_key[16] = {0x3a, 0x1f, ...}
    _shape(
        "bytes",
        rf"\w{{0,32}}+(?:\[\w{{0,16}}\])?{_GAP}(?::[ \t]{{0,4}}[\w\[\]; ]{{1,30}})?:?={_GAP}"
        rf"(?:(?:new )?[\w.\[\]!]{{1,24}})?[(\[{{\s]{{1,6}}\s{{0,40}}{_BYTES}",
    ),
    # | user | password |, and the rows below
    _shape(
        "table",
        r"[\w \-]{0,24}+\|[^\n]{0,200}+\n[ \t|:\-]{5,200}+"
        r"(?P<bare>(?:\n[ \t]{0,8}+\|[^\n]{1,400}+){1,4096}+)",
    ),
    # user,password,role, and the rows below
    _shape(
        "first column",
        rf"[\w\-]{{0,24}}+\"?(?:[,;\t]{_CELL}){{1,20}}+\r?{_ROWS}",
        rf"{_FIRST_ON_LINE}\"?[\w\-]{{0,24}}",
    ),
    _shape(
        "column",
        rf"[\w\-]{{0,24}}+\"?(?:[,;\t]{_CELL}){{0,20}}+\r?{_ROWS}",
        rf"(?:^|\n)(?:{_CELL}[,;\t]){{1,20}}\"?[\w\-]{{0,24}}",
    ),
)
_BESIDE = (
    # getenv("DB_PASSWORD", "tulip")
    _shape("default", rf"{_MORE}[\"']{_GAP},\s{{0,40}}+{_QUOTED}", _CALLED),
    # process.env.DB_PASSWORD || 'tulip', env::var("SECRET").unwrap_or("tulip")
    _shape("or", rf"[\w\-]{{0,32}}+[\"'\])\s]{{0,4}}+{_OR}\s{{0,8}}+{_QUOTED}"),
    # ${DB_PASSWORD:-tulip}
    _shape("shell", r"[\w.]{0,32}+(?::[\-=]?|[\-=])(?P<quoted>[^}\s]{1,200}+)}", r"\$\{[\w.\-]{0,40}"),
    # <property name="password" value="tulip"/>
    _shape("attribute", rf"{_MORE}[\"'][ \t][^<>\n]{{0,120}}?\bvalue=[\"'](?P<quoted>[^\"'\n]{{1,400}}+)"),
    _shape("attribute first", rf"{_MORE}[\"']", _ATTRIBUTE),
    # <password>tulip</password>, <string name="api_key">tulip</string>, and the key and string of a plist
    _shape(
        "element",
        r"[\w.:\-]{0,32}+[\"']?(?:</key)?(?:\s[^<>\n]{0,120}+)?>\s{0,40}+(?:<(?:value|string)>)?"
        r"(?P<quoted>[^<>\n]{1,400}+)\s{0,40}+</",
        _TAGGED,
    ),
    # - name: DB_PASSWORD, and value: tulip on the next line
    _shape(
        "pair",
        rf"{_MORE}[\"']?{_GAP}[,;]?\s{{0,80}}+[\"']?(?:value|default)[\"']?{_GAP}[:=]{_GAP}{_VALUE}",
        r"(?i:name|key|variable)[\"']?[ \t]{0,4}[:=]?[ \t]{0,4}[\"']?[\w.\-]{0,40}",
    ),
    # variable "db_password" { default = "tulip" }
    _shape("variable", rf"[\w\-]{{0,32}}+\"{_GAP}{_DEFAULT}", r"variable[ \t]++\"[\w\-]{0,40}"),
    # --password tulip
    _shape("flag", rf"{_SPACE}{_GIVEN}", r"(?:^|[\s\"'])--?[\w\-]{0,24}"),
    # setPassword("tulip")
    _shape("set", rf"{_GAP}\({_GAP}{_QUOTED}"),
)
_TOLD = (
    # storePassword "tulip", the password is "tulip", | password | tulip |
    _shape("spaced", rf"{_SPACE}(?:(?:is|\|){_SPACE})?{_QUOTED}"),
    _shape("cell", rf"{_SPACE}\|{_SPACE}(?P<quoted>[^\s|]{{3,80}}+)[ \t]{{0,20}}+\|"),
    # ENV DB_PASSWORD tulip
    _shape(
        "instruction",
        rf"[\w]{{0,32}}+{_SPACE}(?P<bare>[^\s\"'=]{{2,200}}+)(?=\s|\Z)",
        rf"{_FIRST_ON_LINE}(?:ENV|ARG|set|setx|setenv|SetEnv)[ \t]++\w{{0,40}}",
    ),
    # login bob password tulip
    _shape("login", rf"{_SPACE}(?P<quoted>[^\s]{{1,200}}+)", r"(?:login|account)\s++[^\s]{1,60}\s++"),
    _shape(
        "line",
        rf"{_SPACE}(?P<bare>[^\s\"'`=:]{{3,200}}+)(?=[ \t]*+(?:\n|\Z))",
        rf"{_FIRST_ON_LINE}\w{{0,16}}",
    ),
)
_LISTED = (
    # passwords:, and its items on the lines below
    _shape("list", r"s[\"']?:[ \t]*+(?P<bare>(?:\n[ \t]*+-[ \t][^\n]{1,400}+){1,4096}+)"),
)  # fmt: skip


def _guard(name: str, ahead: str = "") -> re.Pattern[str]:
    """Holds where no letter stands before a name, or its capital begins a word; `ahead` must follow it."""
    left = f"(?<![A-Za-z].{{{len(name)}}})|(?<=[a-z][A-Z].{{{len(name) - 1}}})"
    return re.compile(f"(?:{left}){ahead}")


def _rules(names: str, shapes: tuple[Shape, ...], judge: Judge) -> Iterator[Rule]:
    for name in names.split():
        yield Rule(name, shapes, judge=judge)


NAMES: tuple[Rule, ...] = (
    *_rules(_PASSWORDS, (*_LISTED, *_ASSIGNED, *_BESIDE, *_TOLD), is_password),
    *_rules(_FOREIGN, (*_LISTED, *_ASSIGNED, *_BESIDE, *_TOLD), is_password),
    *_rules(_PASSWORDS_OF, (*_ASSIGNED, *_BESIDE, *_TOLD), is_password),
    Rule("pass", (*_ASSIGNED, *_BESIDE), _guard("pass", _NO_LETTER), is_password),
    Rule("pwd", _ASSIGNED, _guard("pwd", _NO_LETTER), is_password),
    Rule("pw", _ASSIGNED, _guard("pw", _NO_LETTER), is_password),
    Rule("psk", _ASSIGNED, _guard("psk", _NO_LETTER), is_password),
    Rule("totp", (*_ASSIGNED, *_BESIDE), judge=is_key),
    Rule("mfa", (*_ASSIGNED, *_BESIDE), judge=is_key),
    *_rules(_PHRASES, (*_ASSIGNED, *_BESIDE, *_TOLD), is_password),
    Rule("key", (*_LISTED, *_ASSIGNED, *_BESIDE), _BEHIND_KEY, is_key),
    Rule("token", (*_ASSIGNED, *_BESIDE), judge=is_token),
    Rule("credential", _ASSIGNED, judge=is_token),
    Rule("auth", _ASSIGNED, judge=is_token),
)


def _rule(trigger: str, ahead: str = "", behind: str = "", judge: Judge = is_given_password) -> Rule:
    shape = Shape(
        trigger.strip(),
        re.compile(ahead) if ahead else None,
        re.compile(f"(?:{behind})\\Z") if behind else None,
    )
    return Rule(trigger, (shape,), judge=judge)


COMMANDS: tuple[Rule, ...] = (
    _rule("curl ", rf"{_ARGUMENTS}(?<=\s)(?:-u|--user)[ =]{{0,2}}{_USER}:[\"']?(?P<bare>{_WORD})"),
    _rule("wget ", rf"{_ARGUMENTS}--(?:http-)?password[ =]{_GIVEN_TO}"),
    _rule("mysql", rf"[a-z]{{0,12}}[ \t]{_ARGUMENTS}(?<=\s)-p(?!ort|rotocol){_GIVEN_TO}"),
    _rule("mariadb", rf"[a-z\-]{{0,12}}[ \t]{_ARGUMENTS}(?<=\s)-p(?!ort|rotocol){_GIVEN_TO}"),
    _rule("sshpass", rf"[ \t]++-p[ \t]{{0,3}}{_GIVEN_TO}"),
    _rule("redis-cli", rf"{_ARGUMENTS}(?<=\s)-a[ \t]++{_GIVEN_TO}"),
    _rule("ldapsearch", rf"{_ARGUMENTS}(?<=\s)-w[ \t]++{_GIVEN_TO}"),
    *(_rule(f"{tool} login", rf"{_ARGUMENTS}(?<=\s)-p[ =]{_GIVEN_TO}")
      for tool in ("docker", "podman", "az", "oc")),
    _rule("htpasswd ", rf"-[a-zA-Z]{{0,4}}b[a-zA-Z]{{0,4}}[ \t]++{_WORD}[ \t]++{_WORD}[ \t]++{_GIVEN_TO}"),
    _rule("-pass", r"(?:in|out)?[ \t]++[\"']?pass:(?P<bare>[^\s\"']{1,200}+)"),
    _rule("--password-stdin", behind=_ECHOED),
    _rule("sudo -s", behind=_ECHOED),
    _rule("chpasswd", behind=_ECHOED),
    _rule("convertto-securestring", rf"[ \t]++(?:-[Ss]tring[ \t]++)?{_QUOTED_TO}"),
    _rule("identified by", rf"[ \t]++(?i:password[ \t]++)?{_QUOTED_TO}"),
    _rule("identified with", rf"[ \t]++[\w'\"]{{1,40}}[ \t]++(?i:by)[ \t]++{_QUOTED_TO}"),
    *(_rule(call, rf"[ \t]{{0,4}}[\"'][^\"'\n]{{0,80}}[\"'][ \t]{{0,4}},\s{{0,40}}{_QUOTED_TO}")
      for call in ("auth=(", "auth = (", "basicauth(", "credential(", "credentials(", ".login(",
                   "authenticate(", "passwordauthentication(", "basic_auth(")),
    *(_rule(call, rf"[ \t]{{0,4}}{_ARGUMENT},\s{{0,40}}{_ARGUMENT},\s{{0,40}}{_QUOTED_TO}")
      for call in ("getconnection(", "new pdo(", "mysqli_connect(", "new mysqli(", "psycopg2.connect(")),
    _rule("sqlplus", rf"{_ARGUMENTS}(?<=\s)\w{{1,40}}/(?P<bare>[^\s@\"']{{1,100}}+)"),
    # host:5432:database:user:tulip
    *(_rule(port, r"[\w*.\-]{0,60}:[\w*.\-]{1,60}:(?P<bare>[^\s:]{1,200}+)(?=\s|\Z)",
            r"(?:^|\n)[\w*.\-]{1,100}")
      for port in (":5432:", ":*:")),
    # ?sv=2022-11-02&sig=abc%3D
    _rule("sig=", r"(?P<bare>[A-Za-z0-9%+/_\-=]{20,400}+)", judge=is_credential),
    # postgres://app:tulip@host: the last @ ends the password
    _rule("://", r"(?P<user>[^\s:/@\"'<>]{0,80}+):(?P<bare>[^\s\"'<>`]{1,256})@", judge=is_no_port),
    _rule("@tcp(", behind=r"[\w.\-]{1,60}:(?P<bare>[^\s:\"']{1,80})"),
    _rule("@unix(", behind=r"[\w.\-]{1,60}:(?P<bare>[^\s:\"']{1,80})"),
    _rule("jdbc:oracle:", r"[a-z]{1,8}:[^\s/\"']{1,60}/(?P<bare>[^\s@\"']{1,100}+)@"),
    *(_rule(scheme, r"[ \t]{0,4}+(?P<bare>[A-Za-z0-9+/=_\-.~]{8,4096}+)", judge=is_credential)
      for scheme in ("bearer ", "basic ", "authorization: token ", "'token ", "\"token ")),
    *(_rule(scheme, r"(?P<bare>[A-Za-z0-9./$=,+\-]{16,400}+)", judge=always)
      for scheme in ("$apr1$", "$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$7$", "$8$", "$9$", "$y$",
                     "$argon2", "{sha}", "{ssha}", "pbkdf2_sha", "$pbkdf2", "$scrypt")),
    # The text after the head of a private key, up to its end.
    _rule("private key", r"(?: BLOCK)?-----(?P<bare>[^\-]{1,65536}+)", judge=always),
    _rule("putty-user-key-file-", r"(?P<bare>[^\0]{1,65536}+)", judge=always),
    _rule("$ansible_vault;", rf"[^\n]{{0,80}}+{_HEX_LINES}", judge=always),
)  # fmt: skip
