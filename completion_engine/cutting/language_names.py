"""The names of languages: one canonical identifier for each, whatever an editor calls it.

Canonical identifiers are those of VS Code's documentation where it has one. Names are compared in lower case.
"""

from __future__ import annotations

import re

UNKNOWN = "plaintext"
_MAX_NAME_CHARS = 256  # the longest name that is read; longer names mean nothing
_VAGUE = frozenset({"web", "template", "conf", "config", "cfg"})  # one name for files of several languages

# identifier | what other editors call it | endings of files | names of files; a row may go on, indented
_TABLE = """
abap | | abap |
ada | gnat | ada adb ads |
apacheconf | apache apachestyle | htaccess htpasswd | httpd.conf
applescript | | applescript scpt |
asciidoc | adoc asciidoctor | adoc asciidoc asc |
asm | assembly nasm masm gas fasm tasm yasm arm-asm arm asm68k x86asm riscv-asm gnu-asm asm-collection | s
    asm nasm inc |
astro | | astro |
awk | gawk mawk | awk gawk |
bat | dosbatch batch batchfile cmd | bat cmd |
bibtex | bib | bib |
bicep | | bicep bicepparam |
blade | | blade.php |
c | c-ts xs lpc cmod | c i h xs |
clojure | clj clojurescript clojurec edn clojure-ts cljs | clj cljs cljc cljx edn bb |
cmake | cmakecache cmake-cache | cmake | cmakelists.txt cmakecache.txt
cobol | | cob cbl cobol |
coffeescript | coffee litcoffee | coffee cson iced | cakefile
cpp | c++ cxx c++-ts arduino ino idl swig ch | cpp cc cxx c++ hpp hh hxx h++ ipp inl tpp txx ino ixx cppm ii
    |
crystal | | cr |
csharp | cs c# c-sharp csharp-ts csx | cs csx cake |
css | css-ts postcss pcss | css pcss postcss wxss |
csv | tsv tsv-csv csv_semicolon csv_pipe csv_whitespace | csv tsv psv |
cuda-cpp | cuda cuda-c | cu cuh |
cython | pyrex | pyx pxd pxi |
d | dlang | d di |
dart | dart-ts | dart |
diff | patch dep3patch udiff | diff patch rej |
dockercompose | docker-compose yaml.docker-compose dockercompose.yaml | | docker-compose.yml
    docker-compose.yaml compose.yml compose.yaml
dockerfile | docker containerfile dockerfile-ts | dockerfile containerfile | dockerfile containerfile
dot | graphviz graphviz-dot | dot gv |
dotenv | env .env envrc-dotenv | env | .env .flaskenv
ejs | html.ejs javascript.ejs embedded-javascript | ejs |
elixir | ex elixir-ts | ex exs | mix.lock
elm | | elm |
erb | eruby html.erb erb-html rhtml embedded-template | erb rhtml |
erlang | erl | erl hrl escript yrl xrl | rebar.config
fish | | fish |
fortran | f90 fortran-modern fortranfreeform fortranfixedform fortranfree fortranfixed fortran_free-form
    fortran_fixed-form | f f77 f90 f95 f03 f08 for ftn |
fsharp | f# fs | fs fsi fsx fsscript |
gdscript | gd godot gdscript3 | gd |
gherkin | cucumber cucumberfeature | feature |
git-commit | gitcommit gitsendemail svn hgcommit cvs vc-git-log-edit log-edit git-commit-elisp git-commit-ts
    jj jjdescription commit | | commit_editmsg merge_msg tag_editmsg
git-rebase | gitrebase git-rebase-ts | | git-rebase-todo
gleam | | gleam |
glsl | gdshader shaderslang slang metal opencl | glsl vert frag geom tesc tese comp gdshader |
go | golang go-ts | go |
go-template | gotmpl gohtmltmpl gotexttmpl tmpl helm go-html-template gohtml chezmoitmpl consul-template
    html-template template | gotmpl gohtml tmpl tpl |
gomod | go.mod go-mod go-mod-ts gosum gowork go.work go.sum | | go.mod go.work go.sum
graphql | gql graphqls | graphql gql graphqls |
groovy | gradle jenkinsfile jenkins nextflow | groovy gradle gvy gy gsh nf jenkinsfile | jenkinsfile
haml | | haml |
handlebars | hbs html.handlebars mustache glimmer html.mustache ember handlebars-html | hbs handlebars
    mustache hjs |
haskell | hs lhaskell chaskell haskell-ts literate-haskell haskell-literate | hs lhs hsc |
haxe | hx | hx |
hcl | hcl2 terragrunt nomad packer docker-bake dockerbake | hcl nomad |
heex | html-heex eelixir html-eex phoenix-heex eex leex surface | heex eex leex sface |
hlsl | fx cg | hlsl hlsli fx fxh cginc compute |
hocon | | hocon |
html | htm xhtml mhtml html-ts mhtml-ts htmlangular angular html.angular htmlcheetah htmlos aspx asp aspvbs
    web vue-html svg-html django-html-plain | html htm xhtml xht shtml aspx |
ignore | gitignore dockerignore hgignore npmignore git-ignore codeowners ignore-file | gitignore
    dockerignore npmignore eslintignore prettierignore hgignore ignore | .gitignore .dockerignore codeowners
ini | dosini cfg conf-windows conf-desktop systemd desktop toml-like confini cfg-ini unit-file systemd-unit
    pip-requirements-ini hgrc | ini cfg service socket timer desktop inf | .pylintrc .flake8
java | java-ts jav bsh | java jav |
javascript | js js2 js3 ecmascript javascript-ts js-ts rjsx-js node javascript.node javascript1.8
    javascript.glimmer gjs glimmer-js | js mjs cjs es6 pac | jakefile
javascriptreact | jsx js-jsx javascript.jsx rjsx javascript-jsx jsx-ts babel | jsx |
jinja | jinja2 jinja-html htmldjango django-html html.jinja html.jinja2 jinja.html django twig html.twig
    html.django nunjucks njk tera htmljinja tornado-template liquid-jinja webc salt sls | j2 jinja jinja2
    twig njk tera |
jq | | jq |
json | json-ld json-ts js-json geojson topojson webmanifest jsonld ipynb jsonian | json geojson webmanifest
    jsonld ipynb har avsc mcmeta map | .watchmanconfig composer.lock
json5 | hjson | json5 hjson |
jsonc | jsoncc json-with-comments snippets jsonian-c cjson tsconfig | jsonc code-workspace code-snippets |
    tsconfig.json jsconfig.json .babelrc .eslintrc settings.json launch.json devcontainer.json
jsonl | ndjson jsonlines json-lines | jsonl ndjson |
jsonnet | libsonnet | jsonnet libsonnet |
jsp | jspf | jsp jspf |
julia | julia-ts ess-julia | jl |
just | justfile | just | justfile .justfile
kdl | | kdl |
kotlin | kt kotlin-ts kotlinscript kotlin-script kts | kt kts |
latex | latex-expl3 plaintex-latex latexe lualatex xelatex latex-ts rnoweb rsweave doctex sweave | tex ltx
    ctx rnw |
lean | lean4 | lean |
less | less-css lesscss | less |
liquid | html.liquid shopify theme-liquid jekyll | liquid |
lisp | commonlisp common-lisp emacs-lisp elisp lisp-interaction lisp-data cl clisp lisp-mode fennel hy |
    lisp lsp cl el fnl hy asd | .emacs
llvm | llvm-ir llvm-mir | ll |
log | messages syslog | log |
lua | lua-ts luau teal luac | lua luau tl rockspec nse | .luacheckrc
m4 | autoconf config configure.ac | m4 ac |
makefile | make makefile-gmake makefile-bsdmake makefile-automake makefile-makepp makefile-imake automake
    gnumakefile gnu-make bsdmake makefile2 mk | mk mak make am | makefile gnumakefile bsdmakefile
    makefile.am ocamlmakefile
markdown | md gfm markdown.gfm markdown-ts pandoc mkd ghmarkdown markdown.pandoc vimwiki lsp_markdown
    telekasten livebook instructions prompt chatagent skill copilotmd markdown_inline markdown.inline
    markdown-inline markdown-rustdoc markdoc djot comment jsdoc poly-markdown livemd aider octo chatmode |
    md markdown mdown mkd mkdn mdwn livemd ronn |
matlab | octave matlab-ts | m-matlab |
mdx | markdown.mdx mdx-ts | mdx |
mediawiki | wikitext wiki xwiki | wiki mediawiki |
mermaid | mmd | mermaid mmd |
meson | | | meson.build meson_options.txt meson.options
mojo | | mojo |
nginx | nginx-conf | nginxconf | nginx.conf
nim | nims nimble | nim nims nimble |
nix | nix-ts | nix |
nushell | nu | nu |
objective-c | objc objectivec obj-c | m |
objective-cpp | objcpp obj-c++ objectivecpp objc++ | mm |
ocaml | tuareg caml ocamlinterface ocaml-interface ocaml.interface reason rescript ocaml.menhir
    ocaml.ocamllex neocaml | ml mli mll mly re rei res resi |
odin | | odin |
openscad | | scad |
org | org-mode | org |
pascal | delphi objectpascal opascal freepascal lazarus object-pascal | pas pp dpr lpr dpk |
perl | cperl perl-ts pod | pl pm t psgi pod | cpanfile
php | php3 php4 php5 phps php-only php-ts phpt | php php3 php4 php5 phtml phps ctp |
plaintext | text plain txt fundamental indented-text code-text-binary help conf-space mail message
    paragraph-indent-text rtf | txt text |
po | gettext | po pot |
powershell | ps1 ps pwsh ps1xml-script psm1 | ps1 psm1 psd1 |
prisma | | prisma |
prolog | swi-prolog | prolog |
properties | conf jproperties java-properties conf-javaprop editorconfig gitconfig git-config git-attributes
    gitattributes conf-unix sshconfig ssh-config sshdconfig conf-colon conf-xdefaults npmrc javaprop
    ssh_config ssh_client_config requirements pip-requirements shellcheckrc git-notes doxyfile hosts crontab
    tmux readline samba sysctl fstab config-unix | properties conf editorconfig gitconfig gitattributes
    gitmodules npmrc | .editorconfig .gitconfig .gitattributes .gitmodules .npmrc
proto | protobuf protocol-buffer proto3 pbtxt textproto protobuf-ts bufbuild | proto |
pug | jade vue-pug | pug jade |
puppet | | epp pp-puppet |
purescript | purs | purs |
python | py python-ts python2 python3 python.django inferior-python ipython sage gyp rpy magicpython
    jupyter-python python-base cpython snakemake xonsh | py pyi pyw pyt ipy gyp gypi rpy smk cpy |
    sconstruct sconscript wscript snakefile
qml | qmljs | qml |
r | rlang ess-r r-ts | r rprofile rhistory | .rprofile
racket | rhombus | rkt rktl |
raku | perl6 p6 raku-ts | raku rakumod rakutest p6 pm6 pl6 |
razor | cshtml aspnetcorerazor razor-html vbhtml | cshtml razor |
restructuredtext | rst rest sphinx restructuredtext-ts rrst | rst rest |
rmd | rmarkdown quarto qmd r-markdown juliamarkdown jmd poly-quarto poly-markdown+r | rmd qmd jmd |
robot | robotframework | robot resource |
ron | | ron |
ruby | rb ruby-ts enh-ruby jruby rake rspec ruby.rspec rbs | rb rbi rbx rjs rake gemspec podspec ru thor
    jbuilder rbs | gemfile rakefile guardfile capfile podfile fastfile brewfile vagrantfile dangerfile
    berksfile
rust | rs rustic rust-ts rs-ts | rs |
sass | indented-sass | sass |
scala | sbt scala-ts | scala sc sbt mill |
scheme | scm chicken guile gerbil geiser-scheme chez | scm ss sld |
scss | scss-ts | scss |
shaderlab | | shader |
shellscript | sh bash zsh ksh shell ash dash csh tcsh bash-ts sh-ts shell-script shellscript-ts ebuild
    apkbuild pkgbuild bats mksh shell-session envrc direnv sh.ebuild nesh.sh bitbake | sh bash zsh ksh csh
    tcsh bats ebuild eclass command zsh-theme bashrc zshrc profile | .bashrc .bash_profile .bash_aliases
    .zshrc .zprofile .zshenv .profile .envrc pkgbuild apkbuild
slim | | slim |
smarty | smarty3 html.smarty | smarty |
sml | standard-ml | sml |
solidity | sol | sol |
sql | mysql plsql pgsql postgres postgresql postgres-sql sqlite sqlite3 sqloracle sqlanywhere sqlhana
    sqlinformix tsql mssql hql hive bigquery spark-sql snowflake-sql ansi-sql sql-interactive redshift
    sqlforms oracle-sql snowsql | sql ddl dml psql pgsql plsql hql |
starlark | bzl bazel skylark buck build bazel-build buildifier tilt tiltfile | bzl bazel star bxl | build
    workspace module.bazel tiltfile
stylus | | styl |
svelte | html.svelte | svelte |
swift | swift-ts swiftgyb swiftinterface | swift |
systemverilog | verilog verilog_systemverilog sv verilogams system-verilog verilog-ts | v sv svh vh |
tcl | expect | tcl tk exp |
templ | | templ |
terraform | terraform-vars tf tfvars terraform-deploy terraform-stack opentofu opentofu-vars | tf tfvars
    tofu |
tex | plaintex plain-tex context initex texinfo texmf tex-plain tex.plain doctex-tex latex-tex | sty cls bbx
    cbx dtx |
thrift | | thrift |
toml | toml-ts conf-toml cargo-lock pip-file | toml | cargo.lock poetry.lock pipfile uv.lock
typescript | ts typescript-ts ts-ts typescript.ts deno typescript.glimmer gts glimmer-ts | ts mts cts |
typescriptreact | tsx typescript.tsx tsx-ts typescript-jsx typescriptjsx web-tsx | tsx |
typst | typ | typ |
v | vlang | vv |
vala | genie | vala vapi |
vb | vbnet vb.net visual-basic basic freebasic vba vbs vbscript qb64 visualbasic vb6 ibasic | vb bas vbs vba
    brs |
vhdl | vhdl-ts | vhd vhdl |
viml | vim vimscript vimrc vimnormal | vim vimrc | .vimrc
vue | vuejs vue.html vue-ts vue3 html.vue | vue |
wat | wast webassembly | wat wast |
wgsl | | wgsl |
xml | nxml xml-ts svg docbk docbkxml ant xsd dtd plist wsdl rss ps1xml xaml msbuild xmldoc sgml xul kml
    mathml gpx atom xib storyboard maven-pom csproj pom xliff rng qrc ui fxml axml bpmn | xml xsd svg plist
    wsdl rss xaml axaml csproj fsproj vbproj vcxproj proj props targets nuspec pom kml gpx xlf dtd rng xib
    storyboard fxml resx config slnx |
xsl | xslt | xsl xslt |
yacc | bison lex flex | yy yacc ly lex |
yaml | yml yaml-ts yaml.ansible ansible yaml.gitlab gitlab-ci yaml.github yaml.github-actions
    github-actions-workflow gha yaml.cloudformation cloudformation eyaml azure-pipelines yaml.gh-actions
    yaml.openapi openapi yaml.helm-values helm-values home-assistant esphome liquid-yaml yaml.kubernetes
    manifest-yaml yaml.cfn cff clang-format github-action woodpecker-ci llvm-mir-yaml | yaml yml eyaml cff
    yaml-tmlanguage | .clang-format .clang-tidy
zig | zig-ts zir | zig zon |
"""

_MODE = re.compile(r"(?:[-_]ts)?[-_]mode$")


def _columns(row: str) -> tuple[str, list[str], list[str], list[str]]:
    identifier, aliases, endings, names = (column.split() for column in row.split("|"))
    return identifier[0], aliases, endings, names


_ROWS = [_columns(row) for row in _TABLE.replace("\n    ", " ").strip().splitlines()]
IDENTIFIERS = frozenset(identifier for identifier, _, _, _ in _ROWS)
ALIASES = {alias: identifier for identifier, aliases, _, _ in _ROWS for alias in aliases}
ENDINGS = {ending: identifier for identifier, _, endings, _ in _ROWS for ending in endings}
FILE_NAMES = {name: identifier for identifier, _, _, names in _ROWS for name in names}


def canonical_language(identifier: str, path: str = "") -> str:
    """Return the canonical identifier of a language by what an editor calls it, or else by its file's path.

    The path decides only if the editor sends no name, an unknown or vague one, or plain text for a file whose
    name says more. A name that nothing explains stays as it is.
    """
    path = path[-_MAX_NAME_CHARS:]
    name = identifier[:_MAX_NAME_CHARS].strip().lower().replace(" ", "-")
    known = _known(name) or _known(_MODE.sub("", name))
    if known and known != UNKNOWN and name not in _VAGUE:
        return known
    return _language_of(path) or known or name or UNKNOWN


def language_of_path(path: str) -> str:
    """Return the canonical identifier of a file's language by its name; `plaintext` if it is unknown."""
    return _language_of(path) or UNKNOWN


def _known(name: str) -> str:
    """The identifier of a name, or of the last part of a compound one that is known, as in `html.twig`."""
    if name in IDENTIFIERS:
        return name
    if name in ALIASES:
        return ALIASES[name]
    parts = name.split(".")
    return next((found for part in reversed(parts) if (found := _known(part))), "") if len(parts) > 1 else ""


def _language_of(path: str) -> str:
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    if found := FILE_NAMES.get(name):
        return found
    if name.startswith(("dockerfile.", "containerfile.")):
        return "dockerfile"
    if name.startswith("makefile."):
        return "makefile"
    ending = name
    while "." in ending:
        ending = ending.partition(".")[2]
        if ending in ENDINGS:
            return ENDINGS[ending]
    return ""
