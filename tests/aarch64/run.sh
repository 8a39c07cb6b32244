#!/usr/bin/env bash
# The tests that say something about ARM, in the interpreter that setup.sh makes: run.sh FOLDER UV_PYTHON [pytest's arguments]
# Where that cannot be had this says so and ends well.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=$1 installer=$2
shift 2
code=0
"$here/setup.sh" "$folder" "$installer" || code=$?
[ $code = 77 ] && exit 0
[ $code = 0 ] || exit $code

# First what kernels spend their time in, compiled here and run there: it takes seconds.
export PYTHONPATH=$root
for machine in x86_64 aarch64; do
    "$installer" -P -m tests.aarch64.loops $machine "$folder/loops.$machine"
done
"$installer" "$here/run_loops.py" "$folder/loops.x86_64" > "$folder/loops.x86_64.txt"
"$folder/python" "$here/run_loops.py" "$folder/loops.aarch64" > "$folder/loops.aarch64.txt"
diff "$folder/loops.x86_64.txt" "$folder/loops.aarch64.txt" || { echo "ARM's loops give other bits." >&2; exit 1; }
echo "ARM's loops give the same bits in $(wc -l < "$folder/loops.aarch64.txt") cases."

# What knows no model; a server with one in miniature; then whole kernels and a text of a whole model by their bits, an
# engine, and that drafts change nothing.
suites=(
    tests/ngram_cache
    tests/lsp_server
    tests/e2e/test_server_completion.py
    tests/e2e/test_server_protocol.py
    tests/completion_engine/cpu/test_golden_bits.py
    tests/aarch64/test_compiling.py
    tests/completion_engine/cpu/test_processor.py
    tests/completion_engine/cpu/test_team.py
    tests/completion_engine/test_toy_engine.py
    tests/completion_engine/decoding/test_exactness.py
)
[ $# = 0 ] || suites=("$@")
cd "$root"
# Emulated, these take longest: they read many texts that somebody might send, and say nothing about a processor.
left_out=(
    --deselect tests/ngram_cache/test_redaction_bounds.py::test_the_time_grows_with_the_text
    --deselect tests/ngram_cache/test_redaction_bounds.py::test_the_time_grows_with_what_follows_a_trigger
    --deselect tests/ngram_cache/test_ignore.py::test_no_pattern_takes_much_longer_for_any_name_than_ordinary_rules
)
# Training is left out too: it takes hours here.
left_out+=(--ignore tests/scripts/distillation/test_command.py)
export HF_HUB_OFFLINE=1 SLIPSTREAM_AHEAD=$installer
exec "$folder/python" -m pytest -p no:cacheprovider -p no:xdist -o timeout=0 --durations 10 "${left_out[@]}" "${suites[@]}"
