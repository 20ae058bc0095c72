#!/bin/sh
# Builds throng as one static file (musl) for each kind of machine, and packs it:
#
#   target/dist/throng-linux-MACHINE/throng          the program
#   target/dist/throng-VERSION-linux-MACHINE.tar.gz  with its licenses and a unit for systemd
#   target/dist/throng-VERSION-linux-MACHINE.tar.gz.sha256
#
# Zig is the C compiler and the linker for all of them; it comes from PyPI into target/dist/tools.
# A machine that cannot be built for here is named at the end, and the exit code is 1.
#
# Usage: packaging/dist.sh [x86_64] [aarch64]

set -u
cd "$(dirname "$0")/.." || exit
machines=${*:-x86_64 aarch64}
cargo=${CARGO:-cargo}
built=${CARGO_TARGET_DIR:-target}
out=target/dist
tools=$out/tools
zig=0.15.2
zigbuild=0.24.1
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)

fail() { echo "dist: $1" >&2; }

# Installs Zig and cargo-zigbuild, unless these versions are there.
install_tools() {
  [ -e "$tools/installed-$zig-$zigbuild" ] && return
  command -v python3 >/dev/null || { fail "python3 is not here, which installs Zig"; return 1; }
  mkdir -p "$out" && python3 -m venv "$tools" &&
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check \
      "ziglang==$zig" "cargo-zigbuild==$zigbuild" &&
    touch "$tools/installed-$zig-$zigbuild" || { fail "pip could not install Zig"; return 1; }
}

# Builds and packs for one machine.
build() {
  machine=$1
  target=$machine-unknown-linux-musl
  name=throng-$version-linux-$machine
  folder=$out/throng-linux-$machine
  if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    command -v rustup >/dev/null || { fail "Rust's $target is not here, nor is rustup"; return 1; }
    rustup --quiet target add "$target" || return 1
  fi
  # Without names of functions and lines: a third of the size.
  PATH=$PWD/$tools/bin:$PATH CARGO=$cargo "$tools/bin/cargo-zigbuild" rustc --release --locked \
    --quiet -p throng-cli --bin throng --target "$target" -- -C strip=debuginfo || return 1
  rm -rf "$folder" && mkdir -p "$folder" &&
    cp "$built/$target/release/throng" LICENSE-APACHE LICENSE-MIT "$folder" &&
    cp packaging/systemd/throng-agent.service "$folder" || return 1
  # The same files make the same archive.
  tar --create --gzip --file "$out/$name.tar.gz" --directory "$out" --sort=name --owner=0 \
    --group=0 --numeric-owner --mtime=2000-01-01 --transform "s,^throng-linux-$machine,$name," \
    "throng-linux-$machine" || return 1
  (cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256") || return 1
  if [ "$(uname -m)" = "$machine" ]; then
    [ "$("$folder/throng" --version)" = "throng $version" ] || { fail "$machine: it does not run"; return 1; }
  fi
  echo "$out/$name.tar.gz"
}

install_tools || exit 1
missing=
for machine in $machines; do
  build "$machine" || missing="$missing $machine"
done
[ -z "$missing" ] || { fail "not built:$missing"; exit 1; }
