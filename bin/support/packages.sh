# shellcheck shell=bash
# Sourced: Debian packages. Nothing here asks: without root's rights (or a sudo that needs no password) it says what
# is missing.

# The mirror that the machine's own sources name for Debian itself (not security updates, nor another vendor's).
debian_mirror() {
  apt-get indextargets --no-release-info --format '$(CREATED_BY) $(RELEASE) $(REPO_URI)' 2>/dev/null |
    awk '$1 == "Packages" && $2 !~ /security|backports/ && $3 ~ /\/debian\/?$/ { sub(/\/$/, "", $3); print $3; exit }'
}

may_install() {
  command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a apt-get -y -q \
    -o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=120 "$@"
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# Those of the named packages that are not installed.
missing_packages() {
  local package
  for package in "$@"; do installed "$package" || printf '%s\n' "$package"; done
}

# install_packages PURPOSE PACKAGE...: installs what is missing, or says so and fails.
install_packages() {
  local purpose=$1 missing log=$heddle_log/packages.log
  shift
  missing=$(missing_packages "$@" | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  if ! may_install; then
    complain "$purpose needs packages that are not installed. As root: apt-get install ${missing% }"
    return 1
  fi
  # shellcheck disable=SC2086 # a list of words
  with_progress "installing ${missing% }" "$log" '' 0 install_now $missing
}

# A new machine has no package lists, an old one may have stale ones.
install_now() {
  apt --no-install-recommends install "$@" || { apt update && apt --no-install-recommends install "$@"; }
}

# The packages of the programs that tests use, without those of programs that are there: Node.js may come with npm, and
# Debian's npm conflicts with it.
program_packages() {
  local program package
  while read -r program package; do
    command -v "$program" >/dev/null || printf '%s\n' "$package"
  done < <(sed 's/#.*//' "$root/bin/packages.txt" | awk 'NF == 2')
}

# unpack_server PURPOSE PACKAGE: unpacks the package into vendor/PACKAGE where the machine does not have its program.
# Debian's packages start a server when they are installed; unpacked it does nothing until it is asked to. Says so
# when that fails. Uses $root.
unpack_server() {
  local folder
  PATH=$PATH:/usr/sbin:/usr/local/sbin:$root/vendor/$2/usr/sbin command -v "$2" >/dev/null && return 0
  folder=$(mktemp -d) || return 0
  {
    (cd "$folder" && { apt-get download "$2" || { as_root apt-get update && apt-get download "$2"; }; }) &&
      mkdir -p "$root/vendor/$2" && dpkg-deb -x "$folder"/"$2"_*.deb "$root/vendor/$2"
  } >"$heddle_log/$2.log" 2>&1 || complain "$1: $2 could not be unpacked"
  rm -rf -- "$folder"
}
