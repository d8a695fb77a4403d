# shellcheck shell=bash
# Sourced by `bin/setup --system`: Ruby 3.3 and 3.4 and the programs that tests use, from Debian's suites. For
# containers and CI: on Debian 12 it upgrades libc6 and some 35 packages with it.
# shellcheck source=bin/support/packages.sh
. "$support/packages.sh"

debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg
apt_etc=/etc/apt
ruby_packages="ruby3.3 ruby3.3-dev ruby3.4 ruby3.4-dev"

# The suite that the machine's own sources name. Not /etc/os-release: it says 13 after a first run on Debian 12.
base_suite() {
  apt-get indextargets --no-release-info --format '$(CREATED_BY) $(RELEASE) $(SOURCESENTRY)' 2>/dev/null |
    awk '$1 == "Packages" && $3 !~ /heddle\.sources/ && $2 ~ /^(bookworm|trixie)$/ { print $2; exit }'
}

# write_as_root FILE: standard input becomes the file's content, if it is not already.
write_as_root() {
  local content
  content=$(cat)
  [ "$(cat "$1" 2>/dev/null)" = "$content" ] || printf '%s\n' "$content" | as_root tee "$1" >/dev/null
}

add_suites() {
  local base=$1 mirror=$2 suites=experimental
  [ "$base" != bookworm ] || suites="trixie experimental"
  write_as_root "$apt_etc/sources.list.d/heddle.sources" <<EOF
Types: deb
URIs: $mirror
Suites: $suites
Components: main
Signed-By: $debian_keyring
EOF
  # Low, so that nothing else comes from there by itself. On Debian 13 trixie is the machine's own suite.
  {
    [ "$base" != bookworm ] || printf 'Package: *\nPin: release n=trixie\nPin-Priority: 100\n\n'
    printf 'Package: *\nPin: release a=experimental\nPin-Priority: 1\n'
  } | write_as_root "$apt_etc/preferences.d/heddle.pref"
}

# Tells what an installation replaces before it does.
tell_replacements() {
  local replaced
  replaced=$(apt-get -s "$@" 2>/dev/null | awk '$1 == "Inst" && $3 ~ /^\[/ { printf "%s%s", n++ ? ", " : "", $2 }')
  if [ -n "$replaced" ]; then say "replaces by newer versions: $replaced"; else say "replaces no package"; fi
}

install_system_rubies() {
  set -- install -t trixie ruby3.3 ruby3.3-dev
  tell_replacements "$@"
  with_progress "installing Ruby 3.3 from trixie" "$heddle_log/packages.log" '' 0 apt --no-install-recommends "$@" ||
    return 1
  set -- install ruby3.4/experimental ruby3.4-dev/experimental libruby3.4/experimental
  tell_replacements "$@"
  with_progress "installing Ruby 3.4 from experimental" "$heddle_log/packages.log" '' 0 \
    apt --no-install-recommends "$@"
}

set_up_system() {
  local base mirror
  # shellcheck disable=SC2046,SC2086 # lists of words
  if command -v dpkg-query >/dev/null &&
    [ -z "$(missing_packages build-essential $ruby_packages $(program_packages))" ]; then
    return 0
  fi
  base=$(base_suite)
  mirror=$(debian_mirror)
  if [ -z "$base" ] || [ -z "$mirror" ]; then
    complain "bin/setup --system knows Debian 12 and 13, and this machine's apt sources name neither." \
      "Install Ruby >= 3.3 yourself and leave --system out."
    return 1
  fi
  may_install || { complain "bin/setup --system needs root's rights, or a sudo that asks for no password"; return 1; }
  say "--system: installs packages for the whole machine (Debian's suite $base, $mirror)"
  add_suites "$base" "$mirror" || return 1
  with_progress "fetching the package lists" "$heddle_log/packages.log" '' 0 apt update || return 1
  # shellcheck disable=SC2046 # a list of words
  install_packages "Testing" build-essential $(program_packages) || return 1
  # shellcheck disable=SC2086 # a list of words
  [ -z "$(missing_packages $ruby_packages)" ] || install_system_rubies
}
