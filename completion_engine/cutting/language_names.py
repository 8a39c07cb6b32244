"""The names of languages: one canonical identifier for each, whatever an editor calls it.

Canonical identifiers are those of VS Code's documentation where it has one. Names are compared in lower case.
"""

from __future__ import annotations

import re

UNKNOWN = "plaintext"
_MAX_NAME_CHARS = 256  # the longest name that is read; longer names mean nothing
_VAGUE = frozenset({"web", "template", "conf", "config", "cfg"})  # one name for files of several languages

# Languages that every editor calls alike, by the ending of their files.
_PLAIN = """
abap astro dart ejs elm fish gleam haml hocon jq kdl liquid mdx mojo nix odin org prisma prolog qml
ron sass scss slim smarty sml svelte templ thrift vue wgsl
"""
# identifier | further names | endings of files, which are names too | names of files; the next language
_TABLE = """
ada | | ada adb ads; apacheconf | apache apachestyle | htaccess htpasswd | httpd.conf; applescript | |
applescript scpt; asciidoc | asciidoctor | adoc asciidoc asc; asm | assembly masm gas fasm tasm asm68k | s
asm nasm inc; awk | | awk gawk; bat | dosbatch batch | bat cmd; bibtex | | bib; bicep | | bicep bicepparam;
blade | | blade.php; c | lpc cmod | c i h xs; clojure | clojurescript clojurec | clj cljs cljc cljx edn bb;
cmake | cmakecache | cmake | cmakelists.txt cmakecache.txt; cobol | | cob cbl cobol; coffeescript | | coffee
cson iced | cakefile; cpp | arduino idl swig ch | cpp cc cxx c++ hpp hh hxx h++ ipp inl tpp txx ino ixx cppm
ii; crystal | | cr; csharp | c# c-sharp | cs csx cake; css | | css pcss postcss wxss; csv | | csv tsv psv;
cuda-cpp | cuda | cu cuh; cython | pyrex | pyx pxd pxi; d | | d di; diff | dep3patch | diff patch rej;
dockercompose | docker-compose | | docker-compose.yml docker-compose.yaml compose.yml compose.yaml;
dockerfile | docker | dockerfile containerfile | dockerfile containerfile; dot | | dot gv; dotenv | .env |
env | .env .flaskenv; elixir | | ex exs | mix.lock; erb | eruby | erb rhtml; erlang | | erl hrl escript yrl
xrl | rebar.config; fortran | | f f77 f90 f95 f03 f08 for ftn; fsharp | f# | fs fsi fsx fsscript; gdscript |
godot | gd; gherkin | cucumber | feature; git-commit | gitcommit gitsendemail svn hgcommit cvs log-edit
jjdescription | | commit_editmsg merge_msg tag_editmsg; git-rebase | gitrebase | | git-rebase-todo; glsl |
shaderslang slang opencl | glsl vert frag geom tesc tese comp gdshader; go | golang | go; go-template | helm
go-html-template html-template template | gotmpl gohtml tmpl tpl; gomod | go-mod gosum gowork | | go.mod
go.work go.sum; graphql | | graphql gql graphqls; groovy | | groovy gradle gvy gy gsh nf jenkinsfile |
jenkinsfile; handlebars | glimmer | hbs handlebars mustache hjs; haskell | lhaskell chaskell haskell-literate
| hs lhs hsc; haxe | | hx; hcl | terragrunt packer docker-bake dockerbake | hcl nomad; heex | eelixir surface
| heex eex leex sface; hlsl | | hlsl hlsli fx fxh cginc compute; html | mhtml htmlangular htmlcheetah htmlos
aspvbs web | html htm xhtml xht shtml aspx; ignore | git-ignore codeowners | gitignore dockerignore npmignore
eslintignore prettierignore hgignore ignore | .gitignore .dockerignore codeowners; ini | dosini conf-windows
conf-desktop systemd confini | ini cfg service socket timer desktop inf | .pylintrc .flake8; java | | java
jav; javascript | js2 node javascript.glimmer gjs | js mjs cjs es6 pac | jakefile; javascriptreact | js-jsx
rjsx | jsx; jinja | jinja-html htmldjango django-html django nunjucks webc salt | j2 jinja jinja2 twig njk
tera; json | json-ld js-json | json geojson webmanifest jsonld ipynb har avsc mcmeta map | .watchmanconfig
composer.lock; json5 | | json5 hjson; jsonc | snippets | jsonc code-workspace code-snippets | tsconfig.json
jsconfig.json .babelrc .eslintrc settings.json launch.json devcontainer.json; jsonl | | jsonl ndjson; jsonnet
| | jsonnet libsonnet; jsp | | jsp jspf; julia | ess-julia | jl; just | | just | justfile .justfile; kotlin |
| kt kts; latex | latexe rnoweb | tex ltx ctx rnw; lean | lean4 | lean; less | less-css | less; lisp |
common-lisp emacs-lisp elisp lisp-interaction fennel | lisp lsp cl el fnl hy asd | .emacs; llvm | llvm-mir |
ll; log | messages | log; lua | teal | lua luau tl rockspec nse | .luacheckrc; m4 | autoconf config | m4 ac;
makefile | makefile-gmake makefile-bsdmake makefile-automake automake | mk mak make am | makefile gnumakefile
bsdmakefile makefile.am ocamlmakefile; markdown | gfm pandoc livebook instructions prompt chatagent skill
markdown.inline markdown-rustdoc markdoc djot comment jsdoc | md markdown mdown mkd mkdn mdwn livemd ronn;
matlab | octave | m-matlab; mediawiki | wikitext xwiki | wiki mediawiki; mermaid | | mermaid mmd; meson | | |
meson.build meson_options.txt meson.options; nginx | | nginxconf | nginx.conf; nim | | nim nims nimble;
nushell | | nu; objective-c | objc objectivec obj-c | m; objective-cpp | objcpp objc++ | mm; ocaml | tuareg
caml ocaml-interface rescript | ml mli mll mly re rei res resi; openscad | | scad; pascal | delphi opascal |
pas pp dpr lpr dpk; perl | cperl | pl pm t psgi pod | cpanfile; php | php-only | php php3 php4 php5 phtml
phps ctp; plaintext | plain fundamental indented-text help mail rtf | txt text; po | | po pot; powershell | |
ps1 psm1 psd1; properties | jproperties conf-javaprop git-config git-attributes conf-unix sshconfig
sshdconfig conf-colon ssh_config ssh_client_config requirements pip-requirements shellcheckrc git-notes
doxyfile hosts crontab tmux readline samba sysctl fstab | properties conf editorconfig gitconfig
gitattributes gitmodules npmrc | .editorconfig .gitconfig .gitattributes .gitmodules .npmrc; proto | protobuf
pbtxt textproto | proto; pug | | pug jade; puppet | | epp pp-puppet; purescript | | purs; python | python2
python3 python.django sage jupyter-python snakemake xonsh | py pyi pyw pyt ipy gyp gypi rpy smk cpy |
sconstruct sconscript wscript snakefile; r | ess-r | r rprofile rhistory | .rprofile; racket | | rkt rktl;
raku | | raku rakumod rakutest p6 pm6 pl6; razor | | cshtml razor; restructuredtext | sphinx rrst | rst rest;
rmd | rmarkdown quarto juliamarkdown | rmd qmd jmd; robot | | robot resource; ruby | | rb rbi rbx rjs rake
gemspec podspec ru thor jbuilder rbs | gemfile rakefile guardfile capfile podfile fastfile brewfile
vagrantfile dangerfile berksfile; rust | | rs; scala | | scala sc sbt mill; scheme | chicken | scm ss sld;
shaderlab | | shader; shellscript | shell shell-script apkbuild pkgbuild shell-session bitbake | sh bash zsh
ksh csh tcsh bats ebuild eclass command zsh-theme bashrc zshrc profile | .bashrc .bash_profile .bash_aliases
.zshrc .zprofile .zshenv .profile .envrc pkgbuild apkbuild; solidity | | sol; sql | mysql postgres postgresql
sqlite sqlite3 sqloracle sqlanywhere sqlhana sqlinformix tsql sqlforms | sql ddl dml psql pgsql plsql hql;
starlark | tilt tiltfile | bzl bazel star bxl | build workspace module.bazel tiltfile; stylus | | styl; swift
| swiftgyb | swift; systemverilog | verilog verilogams | v sv svh vh; tcl | expect | tcl tk exp; terraform |
terraform-vars opentofu | tf tfvars tofu; tex | plaintex plain-tex context initex texinfo texmf | sty cls bbx
cbx dtx; toml | conf-toml | toml | cargo.lock poetry.lock pipfile uv.lock; typescript | typescript.glimmer
gts | ts mts cts; typescriptreact | | tsx; typst | | typ; v | | vv; vala | | vala vapi; vb | vbnet vb.net
basic freebasic qb64 visualbasic ibasic | vb bas vbs vba brs; vhdl | | vhd vhdl; viml | vimnormal | vim vimrc
| .vimrc; wat | | wat wast; xml | nxml docbk docbkxml ant ps1xml msbuild sgml | xml xsd svg plist wsdl rss
xaml axaml csproj fsproj vbproj vcxproj proj props targets nuspec pom kml gpx xlf dtd rng xib storyboard fxml
resx config slnx; xsl | | xsl xslt; yacc | | yy yacc ly lex; yaml | ansible gitlab-ci openapi helm-values
github-action woodpecker-ci llvm-mir-yaml | yaml yml eyaml cff yaml-tmlanguage | .clang-format .clang-tidy;
zig | zir | zig zon
"""

_MODE = re.compile(r"(?:[-_]ts)?(?:[-_]mode)?$")
_ENTRIES = [*_TABLE.split(";"), *(f"{name}| |{name}" for name in _PLAIN.split())]
_ROWS = [[column.split() for column in f"{entry}| | |".split("|")] for entry in _ENTRIES]
IDENTIFIERS = frozenset(row[0][0] for row in _ROWS)
ALIASES, ENDINGS, FILE_NAMES = ({name: row[0][0] for row in _ROWS for name in row[at]} for at in (1, 2, 3))


def canonical_language(identifier: str, path: str = "") -> str:
    """Return the canonical identifier of a language by what an editor calls it, or else by its file's path.

    The path decides only if the editor sends no name, an unknown or vague one, or plain text for a file whose
    name says more. A name that nothing explains stays as it is.
    """
    name = identifier[:_MAX_NAME_CHARS].strip().lower().replace(" ", "-")
    known = _known(name) or _known(_MODE.sub("", name))
    if known and known != UNKNOWN and name not in _VAGUE:
        return known
    return _language_of(path) or known or name or UNKNOWN


def language_of_path(path: str) -> str:
    """Return the canonical identifier of a file's language by its name; `plaintext` if it is unknown."""
    return _language_of(path) or UNKNOWN


def _known(name: str) -> str:
    """Return the identifier of a name, or of the last part of a compound one that is known: `html.twig`."""
    if name in IDENTIFIERS:
        return name
    if found := ALIASES.get(name) or FILE_NAMES.get(name) or ENDINGS.get(name):
        return found
    parts = name.split(".")
    return next((found for part in reversed(parts) if (found := _known(part))), "") if len(parts) > 1 else ""


def _language_of(path: str) -> str:
    name = path[-_MAX_NAME_CHARS:].replace("\\", "/").rpartition("/")[2].lower()
    if name.startswith(("dockerfile.", "containerfile.", "makefile.")):
        name = name.partition(".")[0]
    if name in FILE_NAMES:
        return FILE_NAMES[name]
    while "." in name:
        name = name.partition(".")[2]
        if name in ENDINGS:
            return ENDINGS[name]
    return ""
