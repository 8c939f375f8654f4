#!/bin/sh
# Installs the Debian packages that Transload needs, by purpose.
#
#   packaging/install-deps.sh build          compile it (Rust itself comes from rustup)
#   packaging/install-deps.sh run            open the window, reach other hosts
#   packaging/install-deps.sh test           run every test
#   packaging/install-deps.sh bench          compare with other programs side by side
#   packaging/install-deps.sh build run      several at once
#   packaging/install-deps.sh --list test    only print the names
#
# It says what it is about to install and does nothing when all is there. It asks before it
# uses sudo, unless CI is set. Server programs that come along (sshd, rsync, vsftpd) are
# neither started now nor at the next boot: the tests start their own.
set -eu

# `env -i` and su leave these out, and dpkg insists on them.
PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin"
export PATH

# `a|b` means that either will do; a is what gets installed.
packages() {
    case "$1" in
    build)
        echo gcc libc6-dev make
        ;;
    run)
        # The window loads all of these when it opens, so the linker never names them.
        echo libgl1 libegl1 libgl1-mesa-dri libwayland-egl1 libx11-xcb1 libxcursor1 libxi6 \
            libxkbcommon-x11-0 libdbus-1-3 libfontconfig1 fonts-dejavu-core
        echo openssh-client
        ;;
    test)
        # Real servers for the tests to talk to.
        echo openssh-server openssh-client rsync
        # Remote logins happen under every shell a person may have.
        echo zsh fish tcsh 'busybox|busybox-static'
        # A screen, a session bus, and hands and eyes for the window.
        echo xvfb xauth x11-utils xdotool imagemagick dbus dbus-daemon
        # A window manager and a toolkit that is not ours, to drag from.
        echo openbox python3-gi gir1.2-gtk-3.0 at-spi2-core gir1.2-atspi-2.0
        # Terminals to type on, and what checks digests apart from us.
        echo bsdutils coreutils
        # Looking into processes and links.
        echo strace procps iproute2 python3
        ;;
    bench)
        echo openssh-server openssh-client rsync netcat-openbsd socat mbuffer iperf3 \
            iproute2 iputils-ping python3
        ;;
    *)
        echo "install-deps.sh: no such group: $1 (build, run, test, bench)" >&2
        exit 2
        ;;
    esac
}

installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# The packages of "$@" (alternatives allowed) that are not there yet.
missing() {
    for entry in "$@"; do
        found=no
        for name in $(echo "$entry" | tr '|' ' '); do
            if installed "$name"; then found=yes; fi
        done
        [ "$found" = yes ] || echo "${entry%%|*}"
    done
}

# Runs as root: installs "$@" with every service start denied.
install_now() {
    export DEBIAN_FRONTEND=noninteractive
    lock=/run/lock/transload-install-deps
    mkdir -p /run/lock
    exec 9>"$lock"
    if command -v flock >/dev/null; then
        flock -w 900 9 || { echo "Another installation still runs; try again later." >&2; exit 1; }
    fi

    # The answer to Debian's question "may this service start now?". One that is already
    # there belongs to the machine's owner and stays as it is.
    policy=/usr/sbin/policy-rc.d
    if (set -C; printf '#!/bin/sh\n# made by transload install-deps.sh for one installation\nexit 101\n' >"$policy") 2>/dev/null; then
        trap 'rm -f "$policy"' EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM HUP
        chmod 755 "$policy"
    fi

    new_services=
    for pair in openssh-server:ssh rsync:rsync vsftpd:vsftpd; do
        for name in "$@"; do
            if [ "$name" = "${pair%%:*}" ]; then new_services="$new_services ${pair##*:}"; fi
        done
    done

    # --no-remove: a package that could only come in place of another must not.
    get() { apt-get -o DPkg::Lock::Timeout=600 "$@" </dev/null; }
    if ! ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1; then get -q update; fi
    if ! get -q -y --no-install-recommends --no-remove install "$@"; then
        echo "Installing failed; refreshing the package lists and trying once more."
        get -q update
        get -q -y --no-install-recommends --no-remove install "$@"
    fi

    # Debian enables a new service for the next boot. Nobody asked for one here.
    for unit in $new_services; do
        if command -v systemctl >/dev/null; then
            systemctl disable "$unit" >/dev/null 2>&1 || true
        elif command -v update-rc.d >/dev/null; then
            update-rc.d "$unit" disable >/dev/null 2>&1 || true
        fi
    done
}

if [ "${1:-}" = --install-now ]; then
    shift
    install_now "$@"
    exit 0
fi

only_list=no
if [ "${1:-}" = --list ]; then
    only_list=yes
    shift
fi
if [ $# -eq 0 ]; then
    echo "usage: install-deps.sh [--list] build|run|test|bench..." >&2
    exit 2
fi

wanted=
for group in "$@"; do
    names=$(packages "$group")
    wanted="$wanted $names"
done
# Word splitting is the point in what follows: package names hold no spaces.
# shellcheck disable=SC2086
wanted=$(printf '%s\n' $wanted | sort -u)

if [ $only_list = yes ]; then
    echo "$wanted" | sed 's/|.*//'
    exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "This system has no apt, so nothing was installed. Transload needs what these Debian"
    echo "packages hold, from your own package manager:"
    # shellcheck disable=SC2086
    echo "  "$wanted
    exit 0
fi

# shellcheck disable=SC2086
todo=$(missing $wanted)
[ -n "$todo" ] || exit 0

# shellcheck disable=SC2086
{
    echo "To be installed with apt-get, for: $*"
    echo "  "$todo
}

self=$(readlink -f "$0")
if [ "$(id -u)" -eq 0 ]; then
    # shellcheck disable=SC2086
    sh "$self" --install-now $todo
elif ! command -v sudo >/dev/null; then
    # shellcheck disable=SC2086
    echo "That needs root, and there is no sudo. As root, run: apt-get install --no-install-recommends" $todo >&2
    exit 1
elif [ -n "${CI:-}" ]; then
    # shellcheck disable=SC2086
    sudo -n sh "$self" --install-now $todo
elif [ -t 0 ]; then
    printf 'Install them now with sudo? [Y/n] '
    read -r answer || answer=n
    case "$answer" in
    '' | y* | Y*)
        # shellcheck disable=SC2086
        sudo sh "$self" --install-now $todo
        ;;
    *)
        echo "Nothing was installed." >&2
        exit 1
        ;;
    esac
else
    # shellcheck disable=SC2086
    echo "Nobody is here to ask. Run: sudo apt-get install --no-install-recommends" $todo >&2
    exit 1
fi
