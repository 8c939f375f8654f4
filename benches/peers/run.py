#!/usr/bin/env python3
"""Transload beside scp, rsync, tar and netcat: the same data over the same link, in one interleaved
run. Needs root for the two network namespaces; docs/performance.md says how to read the figures."""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from lab import Lab, Trouble, must, processor_use
from methods import METHODS, USUAL

ROOT = Path(__file__).resolve().parents[2]


def choices():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    ask.add_argument("--bin", type=Path, default=target / "release", help="folder with transload and its agent")
    ask.add_argument("--work", type=Path, default=Path("/var/tmp/transload-bench"), help="scratch folder")
    ask.add_argument("--out", type=Path, help="write every run to this file too, one JSON object a line")
    ask.add_argument("--data", default="big,small", help="of big (one file), small, mixed")
    ask.add_argument("--size", default="1G", help="size of the one big file")
    ask.add_argument("--methods", default=",".join(USUAL), help="comma list, or all")
    ask.add_argument("--rounds", type=int, default=5)
    ask.add_argument("--to", choices=["memory", "disk"], default="memory", help="what the destination lies on")
    ask.add_argument("--pull", action="store_true", help="fetch instead of send")
    ask.add_argument("--rate", default="", help="limit the link, as tc writes it: 1gbit")
    ask.add_argument("--base", default="rsyncd", help="method that the ratios refer to")
    ask.add_argument("--quiet", type=float, default=0.15, help="begin a run only below this use of the processors")
    ask.add_argument("--patience", type=float, default=60, help="seconds to wait for that before running all the same")
    ask.add_argument("--timeout", type=float, default=300, help="seconds for one run")
    ask.add_argument("--seed", type=int, default=7)
    ask.add_argument("--list", action="store_true", help="list the methods and stop")
    return ask.parse_args()


def in_bytes(text):
    unit = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1].upper())
    return int(text[:-1]) * unit if unit else int(text)


def fill(path, size, chance):
    """Writes bytes that no compressor helps with, the same for the same `chance`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        while size > 0:
            piece = chance.randbytes(min(size, 2**22))
            file.write(piece)
            size -= len(piece)


def make_data(kind, folder, size):
    """Makes a data set below `folder`, unless it is there; returns what to copy."""
    place = folder / ("big.bin" if kind == "big" else kind)
    done = folder / f".{kind}-{size if kind == 'big' else ''}"
    if done.exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    chance = random.Random(kind)
    if kind == "big":
        fill(place, size, chance)
    elif kind == "small":
        # As in a folder of a package manager or of source code: most below 4 KiB, a long tail.
        for i in range(7000):
            fill(place / f"d{i % 70:02}" / f"f{i}.txt", int(chance.lognormvariate(7.2, 1.6)), chance)
    elif kind == "mixed":
        for i in range(1000):
            fill(place / f"d{i % 20:02}" / f"photo{i}.jpg", 2**16, chance)
        for i in range(8):
            fill(place / "films" / f"film{i}.mkv", 48 * 2**20, chance)
    else:
        raise Trouble(f"no such data: {kind} (big, small, mixed)")
    done.touch()
    return place


def weigh(place):
    """How many files and bytes lie at `place`."""
    if not place.is_dir():
        return (1, place.stat().st_size) if place.exists() else (0, 0)
    sizes = [os.lstat(Path(base, name)).st_size for base, _, names in os.walk(place) for name in names]
    return len(sizes), sum(sizes)


class Bench:
    def __init__(self, opts):
        self.opts = opts
        self.memory = opts.work / "memory"
        self.disk = opts.work / "disk"
        self.port = 20000
        self.compared = set()
        self.runs = []

    def prepare(self):
        opts = self.opts
        for folder in (self.memory, self.disk, opts.work / "tools", opts.work / "home"):
            folder.mkdir(parents=True, exist_ok=True)
        if not os.path.ismount(self.memory):
            room = 3 * in_bytes(opts.size) + 2**31
            must("mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(self.memory))
        agent = opts.bin / f"transload-agent-linux-{os.uname().machine}"
        for name, built in (("transload", opts.bin / "transload"), ("transload-agent", agent)):
            if built.exists():
                shutil.copy(built, opts.work / "tools" / name)

    def destination(self):
        """A fresh empty folder. On a disk nothing is deleted between runs, only cut to nothing:
        ext4 avoids a freed inode for minutes and searches past it for every new file, so a
        benchmark that cleans up measures its own cleaning."""
        base = self.memory if self.opts.to == "memory" else self.disk
        if self.opts.to == "memory":
            shutil.rmtree(base / "to", ignore_errors=True)
            place = base / "to"
        else:
            for big in base.glob("to-*/**/*"):
                if big.is_file() and not big.is_symlink() and big.stat().st_size > 2**20:
                    os.truncate(big, 0)
            place = base / f"to-{time.monotonic_ns()}"
        place.mkdir(parents=True)
        if self.opts.to == "disk":
            os.sync()
        return place

    def quieten(self):
        deadline = time.monotonic() + self.opts.patience
        while (use := processor_use()) > self.opts.quiet and time.monotonic() < deadline:
            time.sleep(0.3)
        return use

    def run_one(self, lab, method, src):
        opts, to = self.opts, self.destination()
        self.port = 20000 + (self.port + 1) % 10000
        fields = {
            "src": src, "dir": src.parent, "name": src.name, "to": to, "etc": lab.etc, "port": self.port,
            "to_below": to.relative_to(opts.work), "src_below": src.relative_to(opts.work),
        }
        command = (method.pull if opts.pull else method.push).format(**fields)
        busy = self.quieten()
        listener = None
        if method.listen:
            listener = lab.far.start(method.listen.format(**fields), lab.env, stdout=subprocess.DEVNULL)
            lab.wait_for(self.port, listener)
        before = (lab.near.seconds(), lab.far.seconds())
        began = time.perf_counter()
        process = lab.near.start(command, lab.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        fault = ""
        try:
            complaint = process.communicate(timeout=opts.timeout)[1].decode(errors="replace").strip()
            if listener:
                listener.wait(opts.timeout)
            if process.returncode:
                fault = f"exit {process.returncode}: {complaint[-160:]}"
        except subprocess.TimeoutExpired:
            fault = f"took over {opts.timeout:.0f} s"
        seconds = time.perf_counter() - began
        after = (lab.near.seconds(), lab.far.seconds())
        for left in (process, listener):
            if left and left.poll() is None:
                os.killpg(left.pid, signal.SIGKILL)
                left.wait()
        if not fault and weigh(to / src.name) != weigh(src):
            fault = f"arrived: {weigh(to / src.name)}, sent: {weigh(src)} (files, bytes)"
        if not fault and (method.name, src) not in self.compared:
            self.compared.add((method.name, src))
            if subprocess.run(["diff", "-rq", src, to / src.name], stdout=subprocess.DEVNULL).returncode:
                fault = "the content differs"
        cpu = [round(b - a, 4) if a is not None else None for a, b in zip(before, after)]
        return {
            "data": src.name, "method": method.name, "seconds": round(seconds, 5), "cpu_near": cpu[0],
            "cpu_far": cpu[1], "busy": round(busy, 3), "fault": fault, "bytes": weigh(src)[1],
        }

    def main(self):
        opts = self.opts
        names = list(METHODS) if opts.methods == "all" else opts.methods.split(",")
        if unknown := [name for name in names if name not in METHODS]:
            raise Trouble(f"no such method: {', '.join(unknown)} (--list has them)")
        self.prepare()
        chance = random.Random(opts.seed)
        with Lab(opts.work, opts.work / "tools", opts.rate) as lab:
            plan = []
            for kind in opts.data.split(","):
                src = make_data(kind, self.memory / "from", in_bytes(opts.size))
                for name in names:
                    method = METHODS[name]
                    if not (method.trees if src.is_dir() else method.files) or opts.pull and not method.pull:
                        continue
                    if method.program and not shutil.which(method.program, path=lab.path):
                        print(f"left out {name}: {method.program} is not there", file=sys.stderr)
                        continue
                    plan.append((method, src))
            for round_ in range(opts.rounds):
                chance.shuffle(plan)
                for method, src in plan:
                    run = {"round": round_, **self.run_one(lab, method, src)}
                    self.runs.append(run)
                    if opts.out:  # at once, so that a crash loses one run
                        with open(opts.out, "a") as file:
                            print(json.dumps(run), file=file)
                    print(f"{round_ + 1}/{opts.rounds} {run['data']:10} {run['method']:28} "
                          + (run["fault"] or f"{run['seconds']:8.3f} s"), file=sys.stderr, flush=True)
        print(self.table())
        return any(run["fault"] for run in self.runs)

    def table(self):
        opts = self.opts
        lines = [f"{os.cpu_count()} processors, link {opts.rate or 'unlimited'}, destination {opts.to}, "
                 f"{'pull' if opts.pull else 'push'}, {opts.rounds} rounds, ratios to {opts.base}"]
        for data in dict.fromkeys(run["data"] for run in self.runs):
            mine = [run for run in self.runs if run["data"] == data]
            lines += ["", f"### {data}, {mine[0]['bytes'] / 1e6:.1f} MB", "",
                      "| method | runs | median s | min | max | MB/s | speed | CPU near | CPU far | checked by |",
                      "|---|---|---|---|---|---|---|---|---|---|"]
            medians = {}
            for name in dict.fromkeys(run["method"] for run in mine):
                good = [run for run in mine if run["method"] == name and not run["fault"]]
                calm = [run for run in good if run["busy"] <= opts.quiet]
                if good:
                    # Runs beside busy programs count only where there are too few others.
                    used = calm if len(calm) >= 3 else good
                    medians[name] = (statistics.median(run["seconds"] for run in used), used, good)
                else:
                    lines.append(f"| {name} | none | {mine[0]['fault'] or 'failed'} | | | | | | | |")
            base = medians.get(opts.base, (None,))[0]
            for name, (middle, used, good) in sorted(medians.items(), key=lambda item: item[1][0]):
                times = [run["seconds"] for run in used]
                cpu = [statistics.median(run[side] for run in used) if used[0][side] is not None else ""
                       for side in ("cpu_near", "cpu_far")]
                lines.append(
                    f"| {name} | {len(used)} of {len(good)} | {middle:.3f} | {min(times):.3f} | {max(times):.3f} "
                    f"| {used[0]['bytes'] / middle / 1e6:.1f} | {f'{base / middle:.2f}x' if base else ''} "
                    f"| {cpu[0]} | {cpu[1]} | {METHODS[name].checks} |")
        return "\n".join(lines)


def main():
    opts = choices()
    if opts.list:
        for method in METHODS.values():
            print(f"{method.name:28} checked by: {method.checks}")
        return 0
    if os.geteuid() != 0:
        raise Trouble("the network namespaces need root: sudo make bench")
    bench = Bench(opts)
    try:
        return 1 if bench.main() else 0
    finally:
        subprocess.run(["umount", bench.memory], check=False, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Trouble as trouble:
        sys.exit(f"bench: {trouble}")
