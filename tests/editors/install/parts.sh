# Owns how a list of parts is set up, and what is told about a part that this machine cannot have; knows none of them.
# Sourced, never run. Takes from whoever sources it:
#   here       the folder of the parts' scripts, each NAME.sh
#   folder     where each part lies afterwards, in a folder of its name
#   python     the interpreter of the test environment
#   parts      the parts in order, each NAME:WHAT IS SKIPPED WITHOUT IT
#   purpose    what the parts are for, in words
#   made_from  files beside a part's script that it is made anew for
#   patience_s seconds that one part may take

# A network that answers nothing must not hold the tests up.
limit=()
if command -v timeout > /dev/null; then limit=(timeout --kill-after=10 "$patience_s"); fi

warn() {
  local frame
  frame=$(printf '=%.0s' {1..100})
  printf '\n%s\n' "$frame" >&2
  printf '  %s\n' "$@" | fold -s -w 98 >&2
  printf '%s\n\n' "$frame" >&2
}

set_up() {
  local part=$1 skipped=$2 script=$here/$1.sh log=$folder/$1.log stamp version status=0
  version=$(cat "$script" "${made_from[@]}" | cksum)
  stamp=$folder/$part/installed
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$version" ]; then return; fi
  echo "Setting up $part for $purpose"
  rm -rf "${folder:?}/$part" "$folder/$part.missing"
  mkdir -p "$folder/$part"
  ${limit[@]+"${limit[@]}"} bash "$script" "$folder/$part" "$python" > "$log" 2>&1 || status=$?
  if [ "$status" = 0 ]; then
    echo "$version" > "$stamp"
  else
    if [ "$status" = 124 ]; then echo "it was not ready after $patience_s s" >> "$log"; fi
    tail -n 1 "$log" > "$folder/$part.missing"
    warn "$part could not be set up, so these are SKIPPED: $skipped." \
      "Reason: $(cat "$folder/$part.missing")" "All that was said: $log"
  fi
}

set_up_all() {
  local part
  for part in "${parts[@]}"; do set_up "${part%%:*}" "${part#*:}"; done
}
