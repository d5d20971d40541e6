# SPDX-License-Identifier: Apache-2.0
#
# What the scripts share. Source it first: it goes to the project's folder and sets strict mode.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=${DLOCK_JOBS:-$(nproc)}

# Clones of the project share what the compiler has done.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

packages_to_build="build-essential cmake ninja-build pkg-config ccache libboost1.81-dev
  libboost-url1.81-dev libboost-json1.81-dev libfmt-dev libspdlog-dev libyaml-cpp-dev libcli11-dev
  libzookeeper-st-dev libhiredis-dev libmemcached-dev libssl-dev libjs-chart.js"
packages_for_zookeeper="libzookeeper-java default-jre-headless"
packages_for_servers="$packages_for_zookeeper redis-server memcached"
packages_to_test="libgtest-dev libgmock-dev sqlite3 libsqlite3-dev clang-format clang-tidy clang-16
  libclang-rt-16-dev liblua5.1-0-dev libboost-context1.81-dev chromium fonts-dejavu-core
  python3-kazoo python3-redis python3-pylibmc libcurator-recipes-java default-jdk-headless python3-tooz nodejs
  valgrind strace python3 curl git
  $packages_for_servers"
packages_for_peers="python3-kazoo python3-redis libcurator-recipes-java default-jdk-headless"

say() { printf '\n==> %s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# need_packages NAME...: installs those that are missing, and nothing else.
need_packages() {
  local package missing=""
  if ! command -v dpkg-query >/dev/null; then
    say "Not a Debian system: expecting the equivalents of: $*"
    return
  fi
  for package in "$@"; do
    installed "$package" || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  local sudo=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "please run as root: apt-get install$missing"
    sudo=sudo
  fi
  say "Installing$missing"
  # RUNLEVEL=1: server packages are wanted for their programs; where no systemd runs, this keeps
  # their start scripts from leaving a server behind.
  local install="env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -q
    --no-install-recommends"
  # shellcheck disable=SC2086
  $sudo $install $missing >&2 || {
    # The package lists may be old, or not there yet.
    $sudo apt-get update -q >&2
    $sudo $install $missing >&2 || die "could not install$missing"
  }
}

# What of npm the interop tests use, by tests/interop/package-lock.json, into build/interop. Needs the
# net when that file has changed, and else nothing.
need_npm_packages() {
  local from=tests/interop to=build/interop
  cmp -s "$from/package-lock.json" "$to/installed.json" && return
  command -v npm >/dev/null || need_packages npm
  say "Installing what $from/package.json names"
  mkdir -p "$to"
  cp "$from/package.json" "$from/package-lock.json" "$to/"
  npm ci --prefix "$to" --ignore-scripts --no-audit --no-fund --prefer-offline --silent >&2 ||
    die "npm could not install what $from/package.json names"
  cp "$to/package-lock.json" "$to/installed.json" # last: it is there when all of it is
}

# field NAME: its value in the one-line JSON object on standard input.
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }
