# shellcheck shell=bash
# Sourced by bin/setup: builds Debian 13's source package ruby3.3 into the user's cache folder, where all checkouts
# find it. The system's packages and apt sources stay as they are; root's rights are used for build packages only.

private_suite=trixie
private_source=ruby3.3
build_packages="build-essential libssl-dev libyaml-dev libffi-dev zlib1g-dev libgmp-dev"

no_ruby() {
  complain "No Ruby >= 3.3 that can compile extensions was found on PATH, under rbenv, mise or asdf, and $1"
  complain "Install Ruby 3.3 or newer with your system's packages or a version manager, or name one in HEDDLE_RUBY."
  return 1
}

# apt with a configuration of its own: one source, folders that this user owns. Proxies and keys are the system's.
private_apt() {
  local apt_home=$heddle_cache/apt
  apt-get -q \
    -o "Dir::Etc::SourceList=$apt_home/sources.list" -o "Dir::Etc::SourceParts=$apt_home/none" \
    -o "Dir::Etc::Preferences=$apt_home/none" -o "Dir::Etc::PreferencesParts=$apt_home/none" \
    -o "Dir::State=$apt_home" -o "Dir::State::Lists=$apt_home/lists" -o "Dir::Cache=$apt_home/cache" \
    -o "Dir::State::Status=$apt_home/status" -o APT::Get::List-Cleanup=0 -o Acquire::Languages=none \
    -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 "$@"
}

fetch_source() {
  local mirror apt_home=$heddle_cache/apt keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || { no_ruby "this machine's apt sources name no Debian mirror to fetch one from."; return 1; }
  mkdir -p "$apt_home/lists/partial" "$apt_home/cache/archives/partial" "$apt_home/none" || return 1
  : >"$apt_home/status"
  printf 'deb-src [signed-by=%s] %s %s main\n' "$keyring" "$mirror" "$private_suite" >"$apt_home/sources.list"
  with_progress "fetching the list of Debian's sources ($private_suite)" "$heddle_log/ruby-update.log" '' 0 \
    private_apt update || return 1
  with_progress "fetching the source package $private_source" "$heddle_log/ruby-fetch.log" '' 0 \
    in_folder "$1" private_apt source --download-only "$private_source"
}

in_folder() { cd -- "$1" && shift && "$@"; }

has_rustc() {
  rustc --version 2>/dev/null | awk '{ split($2, v, "."); ok = v[1] > 1 || v[2] >= 58 } END { exit !ok }'
}

# rustc 1.58 or newer makes YJIT possible. On standard output the option, beside it a line on what became of it.
yjit_option() {
  if ! has_rustc && may_install; then install_packages "YJIT" rustc >&2; fi
  if has_rustc; then
    printf -- '--enable-yjit'
  else
    complain "no rustc >= 1.58 here: the private Ruby is built without YJIT (Debian: apt-get install rustc)"
    printf -- '--disable-yjit'
  fi
}

build_private_ruby() {
  local work version prefix source yjit
  command -v apt-get >/dev/null || { no_ruby "there is no apt-get to fetch Debian's source package with."; return 1; }
  mkdir -p "$heddle_cache" || return 1
  # Another checkout may be building the same.
  exec 8>"$heddle_cache/lock"
  command -v flock >/dev/null && ! flock -n 8 && { say "waiting for another build of Ruby to end"; flock 8; }
  if ruby_candidates | grep -q '^3 '; then
    exec 8>&-
    return 0
  fi
  # shellcheck disable=SC2086 # a list of words
  install_packages "Building Ruby" $build_packages || {
    has_rustc || complain "With rustc (1.58 or newer) as well it is built with YJIT, and faster."
    return 1
  }
  yjit=$(yjit_option)
  say "building a Ruby of Heddle's own into $heddle_cache (about 4 minutes on two cores)"

  rm -rf -- "$heddle_cache"/build.* # of a build that was killed; the lock says that there is no other
  work=$(mktemp -d "$heddle_cache/build.XXXXXX") || return 1
  # shellcheck disable=SC2064 # this folder, whatever $work is later
  trap "rm -rf -- '$work'" EXIT
  fetch_source "$work" || return 1
  in_folder "$work" dpkg-source --no-check -x "$work"/*.dsc source >"$heddle_log/ruby-unpack.log" 2>&1 || {
    cat "$heddle_log/ruby-unpack.log" >&2
    return 1
  }
  source=$work/source
  version=$(sed -n 's/^# *define RUBY_VERSION_TEENY *//p' "$source/version.h")
  prefix=$heddle_cache/ruby-3.3.$version
  compile_private_ruby "$source" "$prefix" "$yjit" || return 1
  exec 8>&-
}

compile_private_ruby() {
  local source=$1 prefix=$2 yjit=$3 jobs
  jobs=$(nproc 2>/dev/null || echo 2)
  # Gems that are bundled, not part of Ruby: `make install` would fetch them. Bundler installs what Heddle needs.
  : >"$source/gems/bundled_gems"
  # A hundred extensions that only Ruby's own tests load.
  rm -rf -- "$source/ext/-test-"
  # Debian's patches touch configure.ac, for other systems than these; a configure that is older would ask for autoconf.
  touch "$source/configure"
  with_progress "configuring Ruby" "$heddle_log/ruby-configure.log" '' 0 \
    in_folder "$source" ./configure --prefix="$prefix" --enable-shared "$yjit" --disable-install-doc || return 1
  with_progress "compiling Ruby" "$heddle_log/ruby-make.log" '^\(configuring\|compiling\|linking\|generating\)' 445 \
    in_folder "$source" make -j "$jobs" || return 1
  rm -rf -- "$prefix"
  with_progress "installing Ruby into $prefix" "$heddle_log/ruby-install.log" '' 0 \
    in_folder "$source" make install-nodoc || return 1
  "$prefix/bin/ruby" -ropenssl -rpsych -rfiddle -rzlib -rbundler -e 'exit' || {
    complain "the Ruby that was built lacks a library; the log is $heddle_log/ruby-make.log"
    return 1
  }
  : >"$prefix/.complete"
  rm -rf -- "$heddle_cache/apt"
  [ "$yjit" = --disable-yjit ] || set -- "$@" --yjit
  shift 3
  say "built $("$prefix/bin/ruby" "$@" -v)"
}
