# shellcheck shell=bash
# Sourced: how the scripts talk. One line a step; long steps tell their progress.

say() { printf '%s\n' "$*"; }

complain() { printf '%s\n' "$*" >&2; }

give_up() {
  complain "$@"
  exit 1
}

# with_progress LABEL LOG PATTERN TOTAL COMMAND...
# Runs the command with its output in LOG. Lines of LOG that match PATTERN are counted against TOTAL (0: only the
# time is told): on a terminal in place, elsewhere a line every 20 s.
with_progress() {
  local label=$1 log=$2 pattern=$3 total=$4 started=$SECONDS told=0 count status line
  shift 4
  "$@" >"$log" 2>&1 </dev/null &
  local pid=$!
  # A background command of a script ignores Ctrl-C: it has to be told.
  trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 1
    line="$label: $((SECONDS - started)) s"
    if [ "$total" -gt 0 ]; then
      count=$(grep -c -e "$pattern" "$log" 2>/dev/null)
      [ "$count" -le "$total" ] || count=$total
      line="$line, $((count * 100 / total)) %"
    fi
    if [ -t 1 ]; then
      printf '\r\033[K%s' "$line"
    elif [ $((SECONDS - started - told)) -ge 20 ]; then
      told=$((SECONDS - started))
      say "$line"
    fi
  done
  wait "$pid"
  status=$?
  trap - INT TERM
  [ ! -t 1 ] || printf '\r\033[K'
  if [ "$status" -eq 0 ]; then
    say "$label: done in $((SECONDS - started)) s"
  else
    tail -n 15 "$log" >&2
    complain "$label: failed (exit code $status); the whole log is $log"
  fi
  return "$status"
}
