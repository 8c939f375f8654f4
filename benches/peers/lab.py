"""Two hosts on one machine: a network namespace each, a virtual cable, and servers at the far end."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

NEAR, FAR = "10.99.7.1", "10.99.7.2"
SSH_PORT, RSYNC_PORT = 2222, 8730


class Trouble(Exception):
    """Something that the person who started the benchmark can mend."""


def must(*argv):
    done = subprocess.run(argv, text=True, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        raise Trouble(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def processor_use(seconds=0.2):
    """The share of processor time that is in use now, 0 to 1."""

    def ticks():
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        numbers = [int(field) for field in fields]
        return sum(numbers), numbers[3] + numbers[4]

    total, idle = ticks()
    time.sleep(seconds)
    later_total, later_idle = ticks()
    return 1 - (later_idle - idle) / max(1, later_total - total)


class Host:
    """One end: a namespace to run commands in, and a control group that counts their time."""

    def __init__(self, name, cgroups):
        self.name = name
        self.group = cgroups / name if cgroups else None

    def make(self):
        must("ip", "netns", "add", self.name)
        must("ip", "-n", self.name, "link", "set", "lo", "up")
        if self.group:
            try:
                self.group.mkdir(exist_ok=True)
            except OSError:
                self.group = None

    def remove(self):
        if self.name in must("ip", "netns", "list").split():
            must("ip", "netns", "del", self.name)
        for _ in range(40):
            try:
                if self.group and self.group.is_dir():
                    self.group.rmdir()
                return
            except OSError:  # its last process has not quite gone
                time.sleep(0.05)

    def start(self, script, env, **streams):
        """Starts a shell script at this end, in a process group of its own."""
        # The group comes first: the namespace has a /sys of its own, without control groups.
        count = f"echo 0 > {self.group}/cgroup.procs; " if self.group else ""
        enter = f'{count}exec ip netns exec {self.name} bash -c "$1"'
        streams.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(
            ["bash", "-c", enter, "bash", script], env=env, start_new_session=True, **streams,
        )

    def seconds(self):
        """Processor seconds used at this end so far, or None where nobody counts them."""
        if not self.group:
            return None
        found = re.search(r"usage_usec (\d+)", (self.group / "cpu.stat").read_text())
        return int(found[1]) / 1e6

    def listens(self, port):
        return bool(must("ip", "netns", "exec", self.name, "ss", "-Hltn", f"sport = :{port}").strip())


class Lab:
    """Both ends, the cable, an sshd and an rsync daemon; a context that cleans up after itself."""

    def __init__(self, work, tools, rate):
        self.work, self.rate = work, rate
        cgroups = None
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, place, kind = line.split()[:3]
            if kind == "cgroup2" and os.access(place, os.W_OK):
                cgroups = Path(place)
        self.near, self.far = Host("tlbench-near", cgroups), Host("tlbench-far", cgroups)
        self.etc = work / "etc"
        self.path = f"{tools}:{os.environ.get('PATH', '')}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        self.env = {
            "PATH": self.path, "HOME": str(self.etc), "LC_ALL": "C",
            "TRANSLOAD_HOME": str(work / "home"),
        }
        self.daemons = []

    def __enter__(self):
        self.near.remove(), self.far.remove()  # what a killed run may have left
        self.etc.mkdir(parents=True, exist_ok=True)
        try:
            self.near.make(), self.far.make()
            self.cable()
            self.servers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
        self.near.remove(), self.far.remove()

    def cable(self):
        must("ip", "link", "add", "tlb0", "netns", self.near.name,
             "type", "veth", "peer", "name", "tlb0", "netns", self.far.name)
        for host, address in ((self.near, NEAR), (self.far, FAR)):
            must("ip", "-n", host.name, "addr", "add", f"{address}/30", "dev", "tlb0")
            if self.rate:
                # Without this the kernel hands over 64 KiB at once, which no real card does.
                must("ip", "-n", host.name, "link", "set", "tlb0", "gso_max_size", "32768")
            must("ip", "-n", host.name, "link", "set", "tlb0", "up")
            if self.rate:
                must("tc", "-n", host.name, "qdisc", "add", "dev", "tlb0", "root",
                     "tbf", "rate", self.rate, "burst", "64kb", "latency", "20ms")

    def servers(self):
        etc = self.etc
        for key in ("host", "login"):
            if not (etc / key).exists():
                must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(etc / key))
        shutil.copy(etc / "login.pub", etc / "allowed")
        Path("/run/sshd").mkdir(exist_ok=True)
        (etc / "sshd_config").write_text("\n".join([
            f"ListenAddress {FAR}:{SSH_PORT}", f"HostKey {etc}/host", "PidFile none",
            f"AuthorizedKeysFile {etc}/allowed", "PermitRootLogin prohibit-password",
            "PasswordAuthentication no", "StrictModes no", "UsePAM no", "UseDNS no",
            "MaxStartups 100", f"SetEnv PATH={self.path}", "Subsystem sftp internal-sftp", "",
        ]))
        host_key = (etc / "host.pub").read_text().split()
        (etc / "known").write_text(f"[{FAR}]:{SSH_PORT} {host_key[0]} {host_key[1]}\n")
        cold = "\n".join([
            "Host far", f"  HostName {FAR}", f"  Port {SSH_PORT}", "  User root",
            f"  IdentityFile {etc}/login", "  IdentitiesOnly yes",
            f"  UserKnownHostsFile {etc}/known", "  LogLevel ERROR", "",
        ])
        (etc / "ssh_cold").write_text(cold)
        (etc / "ssh_warm").write_text(cold + f"  ControlPath {etc}/master\n")
        (etc / "rsyncd.conf").write_text("\n".join([
            f"address = {FAR}", f"port = {RSYNC_PORT}", "use chroot = no", f"log file = {etc}/rsyncd.log",
            "[work]", f"path = {self.work}", "read only = no", "uid = root", "gid = root", "",
        ]))
        sshd = shutil.which("sshd", path=self.path)
        if not sshd:
            raise Trouble("sshd is missing: the package openssh-server has it")
        self.daemon(f"exec {sshd} -D -e -f {etc}/sshd_config", SSH_PORT)
        if shutil.which("rsync", path=self.path):
            self.daemon(f"exec rsync --daemon --no-detach --config={etc}/rsyncd.conf", RSYNC_PORT)
        # The connection that the warm methods share.
        self.daemons.append(self.near.start(
            f"exec ssh -F {etc}/ssh_warm -M -N far", self.env, stderr=subprocess.DEVNULL))

    def daemon(self, script, port):
        log = open(self.etc / "daemons.log", "ab")
        daemon = self.far.start(script, self.env, stdout=log, stderr=log)
        self.daemons.append(daemon)
        self.wait_for(port, daemon)

    def wait_for(self, port, process):
        """Waits until the far end listens on `port`."""
        deadline = time.monotonic() + 10
        while not self.far.listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Trouble(f"nothing listens on port {port}; see {self.etc}/daemons.log")
            time.sleep(0.005)
