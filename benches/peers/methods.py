"""What is compared: each method is a command at the near end, and a listener at the far end if it
needs one. Every command leaves `{name}` in the folder `{to}`."""

from dataclasses import dataclass

from lab import FAR, RSYNC_PORT


@dataclass(frozen=True)
class Method:
    name: str
    push: str
    pull: str = ""       # empty: this method only pushes here
    listen: str = ""     # runs at the far end before the clock starts
    files: bool = True   # takes one file
    trees: bool = True   # takes a folder
    checks: str = "no"   # what vouches for the content: no, tcp, tag (of the cipher), digest
    program: str = ""    # must be in PATH


def over_ssh(config):
    """The methods that log in, with a fresh connection or with one that is already there."""
    ssh = f"ssh -F {{etc}}/{config}"
    suffix = "" if config == "ssh_cold" else "+warm"
    yield Method(f"scp{suffix}", f"scp -qpr -F {{etc}}/{config} {{src}} far:{{to}}/",
                 f"scp -qpr -F {{etc}}/{config} far:{{src}} {{to}}/", checks="tag", program="scp")
    yield Method(f"rsync-ssh{suffix}", f"rsync -a -e '{ssh}' {{src}} far:{{to}}/",
                 f"rsync -a -e '{ssh}' far:{{src}} {{to}}/", checks="digest", program="rsync")
    yield Method(f"tar-ssh{suffix}", f"tar -C {{dir}} -c {{name}} | {ssh} far 'tar -C {{to}} -x'",
                 f"{ssh} far 'tar -C {{dir}} -c {{name}}' | tar -C {{to}} -x", checks="tag")
    yield Method(f"cat-ssh{suffix}", f"{ssh} far 'cat > {{to}}/{{name}}' < {{src}}",
                 f"{ssh} far 'cat {{src}}' > {{to}}/{{name}}", trees=False, checks="tag")
    for digest in ("md5", "blake3", "none"):
        for durable in (True, False):
            call = (f"transload copy --quiet --yes --method tcp --verify {digest} "
                    f"{'' if durable else '--no-durable '}--ssh-config {{etc}}/{config} ")
            yield Method(f"transload-{digest}{'' if durable else '-nosync'}{suffix}",
                         call + "{src} far:{to}/", call + "far:{src} {to}/",
                         checks="tag" if digest == "none" else "digest", program="transload")


def all_methods():
    yield from over_ssh("ssh_cold")
    yield from over_ssh("ssh_warm")
    daemon = f"rsync://{FAR}:{RSYNC_PORT}/work"
    yield Method("rsyncd", f"rsync -a {{src}} {daemon}/{{to_below}}/", f"rsync -a {daemon}/{{src_below}} {{to}}/",
                 checks="digest", program="rsync")
    for tool, program, send, receive in (
        ("nc", "nc.openbsd", f"nc.openbsd -N {FAR} {{port}}", "nc.openbsd -d -l {port}"),
        ("socat", "socat", f"socat -u -b 1048576 - TCP:{FAR}:{{port}}", "socat -u -b 1048576 TCP-LISTEN:{port},reuseaddr -"),
        ("mbuffer", "mbuffer", f"mbuffer -q -m 64M -O {FAR}:{{port}}", "mbuffer -q -m 64M -I {port}"),
    ):
        yield Method(tool, f"{send} < {{src}}", listen=f"{receive} > {{to}}/{{name}}",
                     trees=False, checks="tcp", program=program)
        yield Method(f"tar-{tool}", f"tar -C {{dir}} -c {{name}} | {send}", listen=f"{receive} | tar -C {{to}} -x",
                     checks="tcp", program=program)
    yield Method("cp", "cp -a {src} {to}/", "cp -a {src} {to}/")


METHODS = {method.name: method for method in all_methods()}

# What is run when nobody chose.
USUAL = ["transload-md5", "transload-blake3", "transload-md5-nosync", "rsyncd", "rsync-ssh", "scp", "tar-nc", "nc", "cp"]
