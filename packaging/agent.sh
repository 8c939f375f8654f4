#!/bin/sh
# Builds the far-end agent as one static file that runs on any Linux of this processor, checks
# it, and puts it beside the program, which offers it to hosts that have none.
#
#   packaging/agent.sh            build, check, place
#   packaging/agent.sh --tree     only check which crates it links (no build)
set -eu
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
target_dir=${CARGO_TARGET_DIR:-target}
max_bytes=$((4 * 1024 * 1024))
# The far end has no window, no database, no bus and no command line to parse.
forbidden='^(egui|eframe|epaint|emath|winit|glutin|glow|wgpu|accesskit|rfd|x11rb|wayland|rusqlite|libsqlite3|zbus|dbus|ksni|notify-rust|clap|indicatif|tokio)'

fail() {
    echo "agent: $*" >&2
    exit 1
}

check_tree() {
    linked=$("$cargo" tree --locked --quiet --no-default-features --edges normal --prefix none --format '{p}')
    bad=$(echo "$linked" | grep -E "$forbidden" | sort -u || true)
    [ -z "$bad" ] || fail "it must not link these crates: $(echo "$bad" | tr '\n' ' ')"
    echo "agent: links $(echo "$linked" | sort -u | wc -l) crates, none of the window, the database, the bus or the command line"
}

check_tree
[ "${1:-}" != --tree ] || exit 0

# Named outright, so that the flag reaches the agent and not the macros that run while it is
# compiled, which cannot be static. It has a folder of its own because another flag would
# otherwise rebuild everything else each time.
host=$(rustc -vV | sed -n 's/^host: //p')
CARGO_TARGET_DIR="$target_dir/static" RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" \
    "$cargo" build --locked --profile agent --no-default-features --bin transload-agent --target "$host"
built=$target_dir/static/$host/agent/transload-agent

bytes=$(stat -c %s "$built")
[ "$bytes" -lt $max_bytes ] || fail "$built has $bytes bytes; the limit is $max_bytes"
# ldd ends with an error for some static files, and its sentence is what tells.
case "$(LC_ALL=C ldd "$built" 2>&1 || true)" in
*'statically linked'* | *'not a dynamic executable'*) ;;
*) fail "$built is not static: $(ldd "$built" 2>&1 | head -n 3)" ;;
esac

name=transload-agent-linux-$(uname -m)
for profile in release debug; do
    mkdir -p "$target_dir/$profile"
    # Renamed into place: the old one may be running.
    cp "$built" "$target_dir/$profile/.$name.new"
    mv -f "$target_dir/$profile/.$name.new" "$target_dir/$profile/$name"
done
echo "agent: static, $bytes bytes: $target_dir/release/$name"
