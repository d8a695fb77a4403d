# shellcheck shell=bash
# Sourced by bin/setup: checkouts with the same Gemfiles have the same gems. They are kept in the user's cache folder, so
# that a new checkout gets hard links to them in place of installing and compiling them again, which takes minutes.
# Uses $heddle_cache (see rubies.sh) and $root.

# What the gems depend on beside the Ruby: the Gemfiles, and what these make of the machine.
gem_cache_key() {
  {
    command -v mariadb_config c++ || :
    cd -- "$root" && cat Gemfile Gemfile.lock heddle.gemspec lib/heddle/version.rb examples/*/Gemfile \
      test/rails/bundles/*/Gemfile
  } | cksum | tr ' ' -
}

# copy_links FROM TO: hard links, or copies where TO is on another file system.
copy_links() { cp -al -- "$1" "$2" 2>/dev/null || { rm -rf -- "$2" && cp -a -- "$1" "$2" 2>/dev/null; }; }

# Of examples and tests: those of other Rubies, or an older one, would be resolved again.
lock_files() { (cd -- "$1" && find examples test/rails/bundles -mindepth 2 -maxdepth 2 -name Gemfile.lock 2>/dev/null); }

restore_gems() {
  local cache name
  cache=$heddle_cache/gems-$(gem_cache_key)
  [ ! -e "$root/vendor/bundle" ] && [ -d "$cache" ] || return 0
  mkdir -p "$root/vendor" || return 1
  copy_links "$cache/bundle" "$root/vendor/bundle" || rm -rf -- "$root/vendor/bundle"
  lock_files "$cache/locks" | while IFS= read -r name; do cp -- "$cache/locks/$name" "$root/$name"; done
  touch "$cache"
}

# Called when gems were installed. Caches that nobody has used for a month go.
keep_gems() {
  local cache work name
  cache=$heddle_cache/gems-$(gem_cache_key)
  mkdir -p "$heddle_cache" && work=$(mktemp -d "$heddle_cache/keep.XXXXXX") || return 0
  copy_links "$root/vendor/bundle" "$work/bundle" &&
    lock_files "$root" | while IFS= read -r name; do
      mkdir -p "$work/locks/${name%/*}" && cp -- "$root/$name" "$work/locks/$name"
    done &&
    rm -rf -- "$cache" && mv -- "$work" "$cache" || rm -rf -- "$work"
  find "$heddle_cache" -maxdepth 1 -name 'gems-*' -mtime +30 -exec rm -rf -- {} +
}
