"""Every name that a common editor gives a language means that language, and its file's name helps out."""

from __future__ import annotations

import pytest

from completion_engine.cutting.language_names import (
    ALIASES,
    ENDINGS,
    FILE_NAMES,
    IDENTIFIERS,
    canonical_language,
    language_of_path,
)

# Language identifiers that editors send: `name`, or `name=identifier` where the two differ.
EDITORS = {
    "vscode": """
    bat bibtex c chatagent=markdown clojure coffeescript cpp csharp css cuda-cpp dart diff dockercompose
    dockerfile dotenv fsharp git-commit git-rebase go groovy handlebars hlsl html ignore ini
    instructions=markdown jade=pug java javascript javascriptreact json jsonc jsonl julia juliamarkdown=rmd
    latex less log lua makefile markdown objective-c objective-cpp perl php plaintext powershell
    prompt=markdown properties python r raku razor restructuredtext ruby rust scss shaderlab shellscript
    skill=markdown snippets=jsonc sql swift tex typescript typescriptreact vb wat xml xsl yaml
    """,
    "neovim": """
    abap ada ant=xml apache=apacheconf apachestyle=apacheconf apkbuild=shellscript applescript arduino=cpp
    asciidoc asm asm68k=asm aspvbs=html astro automake=makefile awk bash=shellscript basic=vb bib=bibtex
    bicep bitbake=shellscript blade bzl=starlark c cfg=ini ch=cpp chaskell=haskell chicken=scheme cl=lisp
    clojure cmake cmakecache=cmake cmod=c cobol codeowners=ignore conf=properties config=m4 confini=ini
    context=tex cpp crontab=properties crystal cs=csharp csh=shellscript css csv cucumber=gherkin
    cuda=cuda-cpp cvs=git-commit d dart dep3patch=diff desktop=ini diff django=jinja djot=markdown docbk=xml
    docbkxml=xml dockerfile dosbatch=bat dosini=ini dot dtd=xml editorconfig=properties eelixir=heex elixir
    elm env=dotenv erlang eruby=erb expect=tcl fasm=asm fennel=lisp fish fortran freebasic=vb fsharp
    fstab=properties gdscript gdshader=glsl gitattributes=properties gitcommit=git-commit
    gitconfig=properties gitignore=ignore gitrebase=git-rebase gitsendemail=git-commit gleam
    glimmer=handlebars glsl go gomod gosum=gomod gowork=gomod graphql groovy gyp=python haml handlebars
    haskell haxe hcl heex help=plaintext hgcommit=git-commit hjson=json5 html htmlangular=html
    htmlcheetah=html htmldjango=jinja htmlos=html hy=lisp ibasic=vb idl=cpp initex=tex java javascript
    javascript.glimmer=javascript javascriptreact jinja jjdescription=git-commit jproperties=properties jq
    json json5 jsonc jsonl jsonnet jsp julia just kdl kotlin lean leex=heex less lex=yacc lhaskell=haskell
    liquid lisp livebook=markdown llvm log lpc=c lua luau=lua m4 mail=plaintext make=makefile markdown
    masm=asm matlab mediawiki mermaid meson messages=log mojo mustache=handlebars mysql=sql nasm=asm nginx
    nim nix nu=nushell objc=objective-c objcpp=objective-cpp ocaml octave=matlab odin opencl=glsl openscad
    org pandoc=markdown pascal pbtxt=proto perl php plaintex=tex plsql=sql po pod=perl prisma prolog proto
    ps1=powershell ps1xml=xml pug purescript pyrex=cython python python2=python qb64=vb qml quarto=rmd r
    racket raku razor rbs=ruby readline=properties requirements=properties rescript=ocaml rmd rng=xml
    rnoweb=latex robot ron rrst=restructuredtext rst=restructuredtext rtf=plaintext ruby rust sage=python
    salt=jinja samba=properties sass sbt=scala scala scheme scss sgml=xml sh=shellscript shaderslang=glsl
    skill=markdown slang=glsl smarty sml snakemake=python solidity sql sqlanywhere=sql sqlforms=sql
    sqlhana=sql sqlinformix=sql sqloracle=sql sshconfig=properties sshdconfig=properties starlark stylus
    surface=heex svelte svg=xml svn=git-commit swift swiftgyb=swift swig=cpp sysctl=properties systemd=ini
    systemverilog tasm=asm tcl tcsh=shellscript teal=lua templ template=go-template tera=jinja terraform
    terraform-vars=terraform tex texinfo=tex texmf=tex text=plaintext tf=terraform thrift tiltfile=starlark
    tmux=properties toml tsv=csv twig=jinja typescript typescript.glimmer=typescript typescriptreact typst v
    vala vb verilog=systemverilog verilogams=systemverilog vhdl vim=viml vimnormal=viml vue wat web=html
    wgsl xhtml=html xml xs=c xsd=xml xslt=xsl yacc yaml zig zir=zig zsh=shellscript
    """,
    "helix": """
    ada astro awk bash=shellscript basic=vb batch=bat bibtex bicep bitbake=shellscript blade c
    c-sharp=csharp clojure cmake comment=markdown common-lisp=lisp cpp crystal css csv cython d dart diff
    djot=markdown docker-bake=hcl docker-compose=dockercompose dockerbake=hcl dockercompose dockerfile dot
    doxyfile=properties dtd=xml eex=heex ejs elisp=lisp elixir elm env=dotenv erb erlang fennel=lisp fish
    fortran freebasic=vb fsharp gas=asm gdscript gherkin git-attributes=properties git-commit
    git-config=properties git-ignore=ignore git-notes=properties git-rebase github-action=yaml
    gitlab-ci=yaml gjs=javascript gleam glimmer=handlebars glsl go gomod gotmpl=go-template gowork=gomod
    graphql groovy gts=typescript haskell haskell-literate=haskell haxe hcl heex helm=go-template hocon
    hosts=properties html htmldjango=jinja hy=lisp ini java javascript javascriptreact jinja
    jjdescription=git-commit jq jsdoc=markdown json json-ld=json json5 jsonc jsonnet jsx=javascriptreact
    julia just kdl kotlin latex lean less llvm llvm-mir=llvm llvm-mir-yaml=yaml log lua luau=lua
    mail=plaintext make=makefile markdoc=markdown markdown markdown-rustdoc=markdown
    markdown.inline=markdown matlab mermaid meson mojo msbuild=xml nasm=asm nginx nim nix nu=nushell
    nunjucks=jinja ocaml ocaml-interface=ocaml odin opencl=glsl openscad org pascal perl php php-only=php
    pip-requirements=properties pkgbuild=shellscript po pod=perl powershell prisma prolog properties
    protobuf=proto pug puppet purescript python qmd=rmd qml quarto=rmd r racket rescript=ocaml rmarkdown=rmd
    rmd robot robots.txt=plaintext ron rst=restructuredtext ruby rust sage=python scala scheme scss
    shellcheckrc=properties slang=glsl sml snakemake=python solidity sql ssh_client_config=properties
    starlark svelte swift systemd=ini systemverilog tcl teal=lua templ tera=jinja terraform
    terraform-vars=terraform textproto=proto tfvars=terraform thrift tilt=starlark toml tsx=typescriptreact
    twig=jinja typescript typescriptreact typst v vala verilog=systemverilog vhdl vim=viml vue wast=wat wat
    webc=jinja wgsl wikitext=mediawiki woodpecker-ci=yaml xml xwiki=mediawiki yaml zig
    """,
    "emacs": """
    ada asm autoconf=m4 awk bash-ts=shellscript bash=shellscript bat bibtex c c++=cpp c++-ts=cpp caml=ocaml
    clojure clojurec=clojure clojurescript=clojure cmake coffee=coffeescript common-lisp=lisp
    conf-colon=properties conf-desktop=ini conf-javaprop=properties conf-toml=toml conf-unix=properties
    conf-windows=ini cperl=perl csharp css css-ts=css cuda=cuda-cpp d dart diff docker-compose=dockercompose
    dockerfile dockerfile-ts=dockerfile elixir elm emacs-lisp=lisp erlang ess-julia=julia ess-r=r
    f90=fortran fish fortran fsharp fundamental=plaintext gdscript gfm=markdown git-commit go go-mod=gomod
    go-ts=go graphql groovy haml haskell hcl html html-ts=html indented-text=plaintext java java-ts=java
    js=javascript js-jsx=javascriptreact js-json=json js-ts=javascript js2=javascript json json-ts=json
    julia just=just kotlin latex less-css=less lisp lisp-interaction=lisp log-edit=git-commit lua m4
    makefile makefile-automake=makefile makefile-bsdmake=makefile makefile-gmake=makefile markdown
    mhtml=html nasm=asm nim nix nxml=xml objc=objective-c octave=matlab opascal=pascal org pascal perl php
    plain-tex=tex powershell prolog protobuf=proto pug purescript python python-ts=python r racket
    rjsx=javascriptreact rst=restructuredtext ruby ruby-ts=ruby rust rust-ts=rust sass scala scheme scss
    sgml=xml sh=shellscript slim solidity sql svelte swift tcl terraform tex texinfo=tex text=plaintext toml
    toml-ts=toml tsx=typescriptreact tsx-ts=typescriptreact tuareg=ocaml typescript typescript-ts=typescript
    typst vala verilog=systemverilog vhdl vue web=html yaml yaml-ts=yaml zig
    """,
}

COMPOUND = [
    ("typescript.tsx", "typescriptreact"),
    ("javascript.jsx", "javascriptreact"),
    ("yaml.docker-compose", "dockercompose"),
    ("yaml.ansible", "yaml"),
    ("html.handlebars", "handlebars"),
    ("html.twig", "jinja"),
    ("markdown.mdx", "mdx"),
    ("cpp.doxygen", "cpp"),
    ("c.doxygen", "c"),
    ("python.django", "python"),
    ("ruby.rails", "ruby"),
    ("sh.ebuild", "shellscript"),
]

SPELLED = [
    ("Python", "python"),
    ("C++", "cpp"),
    (" C# ", "csharp"),
    ("TSX", "typescriptreact"),
    ("Shell Script", "shellscript"),
    ("LaTeX", "latex"),
    ("makefile-gmake-mode", "makefile"),
    ("python-ts-mode", "python"),
    ("c++-mode", "cpp"),
]

BY_PATH = [
    ("", "src/app.vue", "vue"),
    ("plaintext", "src/App.svelte", "svelte"),
    ("text", "Dockerfile", "dockerfile"),
    ("", "Dockerfile.dev", "dockerfile"),
    ("fundamental", "build/Makefile", "makefile"),
    ("web", "view.erb", "erb"),
    ("web", "page.html", "html"),
    ("web", "page", "html"),
    ("", "C:\\work\\Main.KT", "kotlin"),
    ("", "resources/view.blade.php", "blade"),
    ("", "a/.eslintrc", "jsonc"),
    ("", "a/CMakeLists.txt", "cmake"),
    ("plaintext", "notes.txt", "plaintext"),
    ("plaintext", "LICENSE", "plaintext"),
    ("", "", "plaintext"),
    ("my-language", "a.py", "python"),
    ("my-language", "a.mylang", "my-language"),
    ("rust", "a.py", "rust"),
    ("conf", "a.toml", "toml"),
    ("conf", "app.conf", "properties"),
]


@pytest.mark.parametrize("editor", EDITORS)
def test_a_name_of_an_editor_is_known(editor: str) -> None:
    pairs = (entry.partition("=") for entry in EDITORS[editor].split())
    found = {name: canonical_language(name) for name, _, _ in pairs}
    expected = {n: i or n for n, _, i in (entry.partition("=") for entry in EDITORS[editor].split())}
    assert len(expected) > 60
    assert found == expected
    assert set(found.values()) <= IDENTIFIERS


@pytest.mark.parametrize(("name", "identifier"), COMPOUND + SPELLED)
def test_a_name_may_be_compound_or_spelled_for_people(name: str, identifier: str) -> None:
    assert canonical_language(name) == identifier


@pytest.mark.parametrize(("name", "path", "identifier"), BY_PATH)
def test_a_path_says_what_a_name_does_not(name: str, path: str, identifier: str) -> None:
    assert canonical_language(name, path) == identifier


def test_a_canonical_identifier_is_its_own_name() -> None:
    assert {canonical_language(identifier) for identifier in IDENTIFIERS} == IDENTIFIERS
    assert {canonical_language(identifier, "a.py") for identifier in IDENTIFIERS - {"plaintext"}} == (
        IDENTIFIERS - {"plaintext"}
    )


def test_no_name_means_two_languages() -> None:
    assert not ALIASES.keys() & IDENTIFIERS
    for names in (ALIASES, ENDINGS, FILE_NAMES):
        assert all(name == name.lower() for name in names)
        assert set(names.values()) <= IDENTIFIERS


@pytest.mark.parametrize(
    ("path", "identifier"),
    [("a/b.py", "python"), ("A.TS", "typescript"), ("x.unheard-of", "plaintext"), ("Gemfile", "ruby")],
)
def test_a_files_name_says_its_language(path: str, identifier: str) -> None:
    assert language_of_path(path) == identifier
