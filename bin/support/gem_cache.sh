# shellcheck shell=bash
# Sourced by bin/setup: checkouts with the same Gemfiles on one machine have the same gems. They are kept in the user's
# cache folder, so that a new checkout gets a copy in place of installing and compiling them, which takes minutes.
# Uses $heddle_cache and $rubies (see rubies.sh) and $root.

# What the gems depend on: the Rubies, for all of which versions are resolved, the Gemfiles, and what these and native
# gems make of the machine.
gem_cache_key() {
  {
    printf '%s\n' "$rubies" | cut -f 3
    uname -sm
    cat /etc/os-release 2>/dev/null
    pkg-config --modversion libxml-2.0 libxslt sqlite3 2>/dev/null
    command -v mariadb_config c++
    cd -- "$root" && cat Gemfile Gemfile.lock heddle.gemspec lib/heddle/version.rb examples/*/Gemfile \
      test/rails/bundles/*/Gemfile test/switch/*/Gemfile test/switch/*/Gemfile.lock
  } | cksum | tr ' ' -
}

# Several checkouts use the cache: one at a time.
with_gem_cache() {
  mkdir -p "$heddle_cache" || return 0
  (
    if command -v flock >/dev/null; then flock 7; fi
    "$@" "$heddle_cache/gems-$(gem_cache_key)"
  ) 7>"$heddle_cache/gems.lock"
}

# Of examples and tests: resolved anew, they would take seconds each.
lock_files() { (cd -- "$1" && find examples test/rails/bundles -mindepth 2 -maxdepth 2 -name Gemfile.lock 2>/dev/null); }

# Called in a checkout without gems.
restore_gems() {
  local cache=$1 name
  [ -d "$cache" ] || return 0
  mkdir -p "$root/vendor" || return 1
  # By a rename: of a copy that was cut off, the stamps would tell the next run that all gems are there.
  rm -rf -- "$root/vendor/bundle.new"
  cp -a -- "$cache/bundle" "$root/vendor/bundle.new" || { rm -rf -- "$root/vendor/bundle.new" && return 0; }
  mv -- "$root/vendor/bundle.new" "$root/vendor/bundle" || return 1
  lock_files "$cache/locks" | while IFS= read -r name; do cp -- "$cache/locks/$name" "$root/$name"; done
  touch "$cache"
}

# Called when gems were installed. Removes what an interrupted run has left, and caches that nobody has used for a month.
keep_gems() {
  local cache=$1 work=$1.new name
  [ ! -L "$root/vendor/bundle" ] || return 0 # the copy would be a link to another checkout
  rm -rf -- "$work" && mkdir -p "$work" || return 0
  cp -a -- "$root/vendor/bundle" "$work/bundle" &&
    lock_files "$root" | while IFS= read -r name; do
      mkdir -p "$work/locks/${name%/*}" && cp -- "$root/$name" "$work/locks/$name"
    done &&
    rm -rf -- "$cache" && mv -- "$work" "$cache" || rm -rf -- "$work"
  find "$heddle_cache" -maxdepth 1 -name 'gems-*' -mtime +30 -exec rm -rf -- {} +
}
