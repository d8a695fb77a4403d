# shellcheck shell=bash
# Sourced by bin/setup: gems and what compiling needs. Uses $rubies (see rubies.sh), $root, $heddle_log.
# shellcheck source=bin/support/packages.sh
. "$support/packages.sh"

# Debian splits a Ruby's headers off: ruby3.3-dev goes with ruby3.3.
headers_package() {
  local package
  package=$(dpkg-query -S "$(ruby_field "$1" 5)" 2>/dev/null | cut -d : -f 1)
  [ -z "$package" ] || printf '%s-dev\n' "$package"
}

# Without headers no extension can be compiled; where we may, they are installed.
any_ruby_that_compiles() {
  local line package
  [ -n "$rubies" ] || return 1
  while IFS= read -r line; do
    [ "$(ruby_field "$line" 6)" = no ] || return 0
    package=$(headers_package "$line")
    if [ -n "$package" ] && may_install && install_packages "Ruby $(ruby_field "$line" 3)" "$package"; then
      rubies=$(find_rubies)
      return 0
    fi
  done <<<"$rubies"
  return 1
}

rubies_that_compile() {
  local line package
  while IFS= read -r line; do
    if [ "$(ruby_field "$line" 6)" = yes ]; then
      printf '%s\n' "$line"
    else
      package=$(headers_package "$line")
      complain "leaving out Ruby $(ruby_field "$line" 3) ($(ruby_field "$line" 5)): its headers are not installed" \
        "(${package:-its -dev package})"
    fi
  done <<<"$rubies"
}

ensure_compiler() {
  command -v make >/dev/null && { command -v cc || command -v gcc || command -v clang; } >/dev/null && return 0
  if command -v apt-get >/dev/null; then
    install_packages "The C extension" build-essential
  elif [ "$(uname)" = Darwin ]; then
    complain "The C extension needs a C compiler and make: xcode-select --install"
    return 1
  else
    complain "The C extension needs a C compiler and make: install gcc or clang, and make"
    return 1
  fi
}

# Groups of the Gemfile that can't be built here, or are not wanted.
groups_without() {
  local groups=''
  [ "$runtime" = no ] || groups=development:mariadb:cplusplus
  command -v mariadb_config >/dev/null || groups=$groups:mariadb
  command -v c++ >/dev/null || groups=$groups:cplusplus
  printf '%s\n' "${groups#:}"
}

# bundle_with RUBY GEMFILE ARGUMENT...: Ruby's own Bundler, with this checkout's settings only.
bundle_with() {
  local ruby=$1 gemfile=$2 version source mirror='' make=''
  shift 2
  # Named, or Bundler would fetch the version that a lock file of another Ruby was written with.
  version=$("$ruby" -rbundler -e 'print Bundler::VERSION' 2>/dev/null) || {
    complain "Bundler is missing for $ruby: install it (Debian: apt-get install ruby-bundler)"
    return 1
  }
  # The lock file names rubygems.org, whatever mirror RubyGems is set to here.
  source=$("$ruby" -e 'print Gem.sources.to_a.first')
  [ "${source%/}" = https://rubygems.org ] || mirror="BUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/=$source"
  # Where the Rails example needs nokogiri compiled, libxml2 need not be compiled with it (2 minutes).
  if pkg-config --exists libxml-2.0 libxslt 2>/dev/null; then
    export BUNDLE_BUILD__NOKOGIRI="${BUNDLE_BUILD__NOKOGIRI---use-system-libraries}"
  fi
  # Nor SQLite for test/switch.
  if pkg-config --exists sqlite3 2>/dev/null; then
    export BUNDLE_BUILD__SQLITE3="${BUNDLE_BUILD__SQLITE3---enable-system-libraries}"
  fi
  # In CI they are compiled in a fifth of the time, and take no more to run the tests.
  if [ "${CI:-}" = true ]; then
    make="'${support// /\\ }/unoptimized'\\ "
    make="MAKEFLAGS=CC=${make}gcc CXX=${make}g++"
  fi
  env -u RUBYOPT -u RUBYLIB -u GEM_HOME -u GEM_PATH -u BUNDLE_DEPLOYMENT ${mirror:+"$mirror"} ${make:+"$make"} \
    BUNDLE_FROZEN="$frozen" BUNDLE_WITHOUT="$(groups_without)" BUNDLE_GEMFILE="$gemfile" \
    BUNDLE_PATH="$root/vendor/bundle" BUNDLE_APP_CONFIG="$heddle_log/bundle" \
    BUNDLE_SILENCE_ROOT_WARNING=1 BUNDLE_IGNORE_MESSAGES=1 BUNDLER_VERSION="$version" \
    "$ruby" -e 'load Gem.activate_bin_path("bundler", "bundle", ">= 0")' -- "$@"
}

# The lock files of the checkout's own gems and of test/switch are under version control: what they name is installed,
# with its checksums, and nothing is resolved. Those of the examples belong to this checkout, and one that another Ruby
# made may name gems that this one can't have.
has_tracked_lock() { case $1 in "$root/Gemfile" | "$root"/test/switch/*) ;; *) return 1 ;; esac }

bundle_install() {
  local frozen=false
  if has_tracked_lock "$2"; then
    frozen=true
    bundle_with "$1" "$2" install || {
      complain "If $2 or heddle.gemspec was changed, write the lock file anew: bin/setup --lock"
      return 1
    }
  else
    bundle_with "$1" "$2" install || { rm -f -- "$2.lock" && bundle_with "$1" "$2" install; }
  fi
}

# install_node_packages: JavaScript that tests run in Node.js or in a browser. Without npm those tests are skipped.
install_node_packages() {
  local source=$root/test/javascript target=$root/vendor/node
  command -v npm >/dev/null || return 0
  if cmp -s "$source/package-lock.json" "$target/package-lock.json" && [ -d "$target/node_modules" ]; then return 0; fi
  mkdir -p "$target" && cp "$source/package.json" "$source/package-lock.json" "$target/" || return 1
  npm ci --prefix "$target" --ignore-scripts --no-audit --no-fund >"$heddle_log/npm.log" 2>&1 || {
    rm -f -- "$target/package-lock.json"
    complain "npm could not install the packages of test/javascript ($heddle_log/npm.log); their tests are skipped"
    return 0
  }
}

# lock_gems: resolves what the lock files do not say yet, by the oldest Ruby, so that all can have it; the newest one's
# Bundler adds the checksums, which needs Bundler 2.6.
lock_gems() {
  local frozen=false runtime=no oldest newest platform gemfile
  oldest=$(printf '%s\n' "$rubies" | sort -t $'\t' -k2,2 | head -n 1)
  newest=$(printf '%s\n' "$rubies" | sort -t $'\t' -k2,2 | tail -n 1)
  for gemfile in "$root/Gemfile" "$root"/test/switch/*/Gemfile; do
    bundle_with "$(ruby_field "$oldest" 5)" "$gemfile" lock || return 1
    for platform in ruby x86_64-linux aarch64-linux x86_64-darwin arm64-darwin; do
      bundle_with "$(ruby_field "$oldest" 5)" "$gemfile" lock --add-platform "$platform" || return 1
    done
    bundle_with "$(ruby_field "$newest" 5)" "$gemfile" lock --add-checksums || return 1
  done
}

# install_gems RUBY VERSION [GEMFILE...]: the development gems, those of the examples and of tests, unless a stamp says that
# exactly these are installed. With $runtime=yes only what running Heddle needs. Those of the examples and of test/switch
# are only installed for Rubies whose version begins with $HEDDLE_TEST_EXAMPLES_ON, if that is set. A file marks that CI
# has compiled some of them.
install_gems() {
  local ruby=$1 version=$2 gemfile name stamp state lock
  shift 2
  if [ $# -eq 0 ]; then
    set -- "$root/Gemfile"
    [ "$runtime" = yes ] || set -- "$@" "$root"/test/rails/bundles/*/Gemfile
    case $runtime$version in no"${HEDDLE_TEST_EXAMPLES_ON:-}"*)
      set -- "$@" "$root"/examples/*/Gemfile "$root"/test/switch/*/Gemfile ;;
    esac
  fi
  for gemfile in "$@"; do
    [ -e "$gemfile" ] || continue
    name=${gemfile#"$root/"}
    stamp=$root/vendor/bundle/.installed-$version-$(printf '%s' "$name" | tr '/' '-')
    # What the Gemfile makes of the machine is a part of it. The others don't depend on the checkout's lock file.
    lock=/dev/null
    ! has_tracked_lock "$gemfile" || lock=$gemfile.lock
    state=$(printf '%s\n' "$ruby" && { command -v mariadb_config c++ || :; } &&
      cat "$gemfile" "$lock" "$root/heddle.gemspec" "$root/lib/heddle/version.rb" | cksum)
    ! has_stamp "$stamp" "$gemfile" "$state" || continue
    if [ "$runtime" = yes ]; then
      stamp=$stamp-runtime
      ! has_stamp "$stamp" "$gemfile" "$state" || continue
    fi
    mkdir -p "$root/vendor/bundle"
    [ "${CI:-}" != true ] || : >"$root/vendor/bundle/.unoptimized" || return 1
    with_progress "gems of $name for Ruby $version" "$heddle_log/gems-$version.log" '' 0 \
      bundle_install "$ruby" "$gemfile" || return 1
    # By a rename: a copy of this folder that shares its files (cp -l) keeps its own stamp.
    printf '%s\n' "$state" >"$stamp.new" && mv -- "$stamp.new" "$stamp" || return 1
    gems_changed=yes
  done
}

has_stamp() { [ -e "$1" ] && [ -e "$2.lock" ] && [ "$(cat "$1")" = "$3" ]; }
