#!/bin/sh
# Builds the agent with the Rust 1.85 that Debian 12 packages: agents for other processors are
# built with it. Nothing is installed; the compiler is unpacked into a cache folder and run there.
#
#   packaging/check-msrv.sh            fetch once, then build
set -eu
cd "$(dirname "$0")/.."

version=1.85.0+dfsg3-1~deb12u3
cache=${XDG_CACHE_HOME:-$HOME/.cache}/transload-msrv
root=$cache/$version

fail() {
    echo "check-msrv: $*" >&2
    exit 1
}

fetch() {
    command -v apt-get >/dev/null || fail "this needs Debian 12's apt to fetch rustc-web $version"
    wanted="rustc-web=$version cargo-web=$version libstd-rust-web-1.85=$version libstd-rust-web-dev=$version"
    # What apt would install on this machine for these four: they and the libraries it lacks.
    # shellcheck disable=SC2086
    list=$(apt-get --simulate --no-install-recommends install $wanted) ||
        fail "apt does not offer rustc-web $version; try: apt-get update (Debian 12 has it)"
    list=$(echo "$list" | sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p')
    [ -n "$list" ] || list=$wanted
    echo "Fetching into $cache (not installed):"
    # shellcheck disable=SC2086
    echo "  "$list
    rm -rf "$root" "$root.part"
    mkdir -p "$root.part/deb" "$root.part/tree"
    # apt gives up its root rights for a download; without the folder's being ours it complains.
    # shellcheck disable=SC2086
    (cd "$root.part/deb" && apt-get -o APT::Sandbox::User=root download $list)
    for deb in "$root.part/deb/"*.deb; do
        dpkg-deb -x "$deb" "$root.part/tree"
    done
    rm -rf "$root.part/deb"
    mv "$root.part" "$root"
}

[ -x "$root/tree/usr/bin/rustc" ] || fetch

libs=$(find "$root/tree" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
# rustup's own variables would send cargo to another compiler.
unset RUSTUP_TOOLCHAIN RUSTC RUSTFLAGS CARGO 2>/dev/null || true
export PATH="$root/tree/usr/bin:/usr/local/bin:/usr/bin:/bin"
export LD_LIBRARY_PATH="$libs"
export CARGO_TARGET_DIR="$cache/target"
rustc --version
rustc --version | grep -q '^rustc 1\.85\.' || fail "the unpacked compiler does not run here"
cargo build --locked --no-default-features --bin transload-agent
echo "check-msrv: the agent builds with $(rustc --version)"
