#!/bin/sh
# Installs the clients that these tests start, as far as they are available here. A test whose
# client is missing is skipped with a message.

cd "$(dirname "$0")" || exit
target=../../../../target/clients
mkdir -p "$target"

has() { command -v "$1" >/dev/null; }
missing() { echo "clients: $1; tests that need it will be skipped" >&2; }

if ! has npm; then
  missing "npm is not here"
elif [ ! node/node_modules/.package-lock.json -nt node/package-lock.json ]; then
  # What npm has kept of the registry may be older than the lock file.
  packages="npm ci --ignore-scripts --no-audit --no-fund --loglevel=error"
  (cd node && { $packages --prefer-offline 2>/dev/null || $packages; }) || missing "npm could not fetch the packages of Node"
fi

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  missing "Python 3.11 or later is not here"
elif [ ! "$target/python/installed" -nt python/requirements.txt ]; then
  python3 -m venv "$target/python" &&
    "$target/python/bin/python" -m pip install --quiet --disable-pip-version-check --requirement python/requirements.txt &&
    touch "$target/python/installed" || missing "pip could not fetch the Python client"
fi

# Takes one program from a Debian package, which would install a service: its name, the package, its
# path there.
take() {
  if has "$1"; then
    ln -sf "$(command -v "$1")" "$target/$1"
  elif [ ! -x "$target/$1" ]; then
    has apt-get && has dpkg-deb && (
      cd "$target" || exit
      rm -f "$2"_*.deb
      apt-get download --quiet --quiet "$2" 2>/dev/null ||
        { apt-get update --quiet --quiet && apt-get download --quiet --quiet "$2"; }
      dpkg-deb --fsys-tarfile "$2"_*.deb | tar -xO "$3" >"$1.part" &&
        chmod +x "$1.part" && mv "$1.part" "$1"
      rm -f "$2"_*.deb "$1.part"
      [ -x "$1" ]
    ) >/dev/null || missing "$1 could not be taken from Debian's package $2"
  fi
}

take promtool prometheus ./usr/bin/promtool
take nats-server nats-server ./usr/sbin/nats-server

# nft is for the doctor's walls: it drops packets on purpose. valgrind counts instructions.
if ! has tsung || ! has chromium || ! has nft || ! has valgrind; then
  if has apt-get && [ "$(id -u)" = 0 ]; then
    export DEBIAN_FRONTEND=noninteractive
    install="apt-get install --quiet --quiet --yes --no-install-recommends chromium tsung fonts-dejavu-core nftables valgrind"
    $install >/dev/null || { apt-get update --quiet --quiet && $install >/dev/null; } || missing "apt-get could not install chromium, tsung, nftables and valgrind"
  else
    missing "chromium, tsung, nftables and valgrind are Debian packages, and only root installs them"
  fi
fi

# Ruby is for Action Cable. The list of packages is as new as the packages above needed it.
if ! ruby -e 'require "action_cable"; require "puma"; require "puma/server"' 2>/dev/null; then
  if has apt-get && [ "$(id -u)" = 0 ]; then
    DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends ruby-actioncable puma >/dev/null ||
      missing "apt-get could not install ruby-actioncable and puma"
  else
    missing "ruby-actioncable and puma are Debian packages, and only root installs them"
  fi
fi
