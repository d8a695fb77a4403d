# shellcheck shell=bash
# Sourced: which Rubies this machine has that Heddle can use. A Ruby is a line of fields with tabs between them:
#   rank, sortable version, version, ABI, path, CRuby's headers (yes or no), YJIT (yes or no)

heddle_cache=${XDG_CACHE_HOME:-$HOME/.cache}/heddle

# ruby_line RANK COMMAND: the line of one Ruby; nothing when it does not run, is older than 3.3 or is not CRuby.
ruby_line() {
  # Not GEM_HOME, RUBYOPT and the like of the caller: only the interpreter is asked.
  env -u RUBYOPT -u RUBYLIB "$2" --disable=gems -rrbconfig -e '
    numbers = RUBY_VERSION.split(".").map(&:to_i)
    exit if RUBY_ENGINE != "ruby" || (numbers <=> [3, 3]).negative?
    c = RbConfig::CONFIG
    headers = File.exist?(File.join(c["rubyhdrdir"].to_s, "ruby.h"))
    print [ARGV[0], format("%03d%03d%03d", *numbers), RUBY_VERSION, c["ruby_version"], RbConfig.ruby,
           headers ? "yes" : "no", defined?(RubyVM::YJIT) ? "yes" : "no"].join("\t"), "\n"
  ' "$1" 2>/dev/null || true
}

# Commands that may be Rubies, each after its rank: 0 `ruby` on PATH, 1 ruby3.4 and the like on PATH, 2 those of
# version managers, 3 the one that bin/setup built.
ruby_candidates() {
  local folder real seen=":" command
  local IFS=:
  for folder in $PATH; do
    real=$(cd -P -- "${folder:-.}" 2>/dev/null && pwd) || continue
    case $seen in *":$real:"*) continue ;; esac
    seen=$seen$real:
    [ ! -x "$real/ruby" ] || printf '0 %s\n' "$real/ruby"
    for command in "$real"/ruby[0-9]*; do
      case ${command##*/} in *[!a-z0-9.]*) continue ;; esac
      [ ! -x "$command" ] || printf '1 %s\n' "$command"
    done
  done
  for command in "${RBENV_ROOT:-$HOME/.rbenv}"/versions/*/bin/ruby \
    "${MISE_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/mise}"/installs/ruby/*/bin/ruby \
    "${ASDF_DATA_DIR:-$HOME/.asdf}"/installs/ruby/*/bin/ruby; do
    [ ! -x "$command" ] || printf '2 %s\n' "$command"
  done
  # A build that was interrupted has no mark.
  for command in "$heddle_cache"/ruby-3.3.*/bin/ruby; do
    [ ! -e "${command%/bin/ruby}/.complete" ] || printf '3 %s\n' "$command"
  done
}

# Every usable Ruby, the preferred one first, one for each ABI. HEDDLE_RUBY leaves that one only.
find_rubies() {
  local line rank command
  if [ -n "${HEDDLE_RUBY:-}" ]; then
    command=$(command -v -- "$HEDDLE_RUBY") || give_up "HEDDLE_RUBY=$HEDDLE_RUBY: there is no such command"
    line=$(ruby_line 0 "$command")
    [ -n "$line" ] || give_up "HEDDLE_RUBY=$HEDDLE_RUBY: this is not CRuby 3.3 or newer"
    printf '%s\n' "$line"
    return
  fi
  ruby_candidates | while read -r rank command; do ruby_line "$rank" "$command"; done |
    sort -t "$(printf '\t')" -k1,1n -k2,2r | awk -F '\t' '
      $6 == "no" { without[++n] = $0; next }   # one with headers is worth more than one without
      !seen[$4]++ { print }
      END { for (i = 1; i <= n; i++) { split(without[i], f, "\t"); if (!seen[f[4]]++) print without[i] } }'
}

ruby_field() { printf '%s\n' "$1" | cut -f "$2"; }
