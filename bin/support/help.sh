# shellcheck shell=bash
# Sourced: help without bin/setup, which may compile for minutes. Uses $root.

# show_header_when_asked ARGUMENT...: with --help among them prints the comment that a tool's own file begins with, and
# ends.
show_header_when_asked() {
  help_asked "$@" || return 0
  awk 'NR == 1 { next } /^#/ { sub(/^# ?/, ""); print; next } { exit }' "$0"
  exit
}

# help_asked ARGUMENT...: whether one of them asks for help.
help_asked() {
  local argument
  for argument in "$@"; do
    case $argument in -h | --help) return 0 ;; esac
  done
  return 1
}

# show_help TOOL: prints the help of a tool in bin/support, or of a benchmark by its path, and ends. A program without
# options of its own begins with a comment.
show_help() {
  # shellcheck source=bin/support/say.sh
  . "$root/bin/support/say.sh"
  # shellcheck source=bin/support/rubies.sh
  . "$root/bin/support/rubies.sh"
  local ruby
  ruby=$(find_rubies | head -n 1 | cut -f 5)
  [ -n "$ruby" ] || give_up "The help needs Ruby 3.3 or newer: bin/setup builds one"
  case $1 in
    */*)
      if grep -q Bench::Command "$1"; then
        "$ruby" --disable=gems "$1" --help
      else
        "$ruby" --disable=gems -r "$root/bin/support/help.rb" "$1" --help
      fi
      ;;
    *) "$ruby" --disable=gems "$root/bin/support/$1" --help ;;
  esac
  exit
}
