"""Tests held against one mutant: in a chosen order, with bounds on time and memory, up to the first that fails."""

import os
import re
import resource
import subprocess
import threading
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path

from switch import VARIABLE

LINE = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. ?(\w*)")
# A mutant may allocate without end.
MEMORY = 3 << 30
# CPU seconds that any tests may take beside four times what they usually do.
SPARE = 2
# Tests up to this many seconds run before those up to the next, so that most mutants are caught soon.
STEPS = (0.02, 0.3, float("inf"))


@dataclass(frozen=True)
class Program:
    """A test binary of libtest."""

    name: str
    path: Path
    folder: Path
    """Where it runs."""


@dataclass
class Outcome:
    failed: str | None = None
    """The test that failed, or the one during which the program ended."""
    timed_out: bool = False
    seconds: dict = field(default_factory=dict)
    """What each test took."""

    def good(self) -> bool:
        return self.failed is None and not self.timed_out


def execute(program: Program, tests: list, live: int, cpu: float, threads: int = 1) -> Outcome:
    """Runs some tests, with mutant number `live` (or none: 0), and ends the program once one has failed.

    `cpu` bounds its CPU seconds, and ten times that its time by the clock.
    """
    environment = os.environ | {
        VARIABLE: str(live),
        "RUST_BACKTRACE": "0",
        # The copies of a function share its frame, unless the compiler optimises.
        "RUST_MIN_STACK": str(128 << 20),
        # The same inputs each time, not made smaller, and none written into the sources.
        "PROPTEST_RNG_SEED": "20260728",
        "PROPTEST_MAX_SHRINK_ITERS": "0",
        "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
    }
    process = subprocess.Popen(
        [program.path, "--exact", f"--test-threads={threads}", *tests],
        cwd=program.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    resource.prlimit(process.pid, resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 2))
    resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
    late = threading.Event()

    def give_up():
        late.set()
        process.kill()

    timer = threading.Timer(10 * cpu, give_up)
    timer.start()
    outcome, running, since = Outcome(), None, time.monotonic()
    try:
        for line in process.stdout:
            if not (found := LINE.match(line.decode(errors="replace"))):
                continue
            name, verdict = found.groups()
            now = time.monotonic()
            outcome.seconds[name], since, running = now - since, now, name
            if verdict == "FAILED":
                outcome.failed = name
                process.kill()
                break
            running = None
        status = process.wait()
    finally:
        timer.cancel()
        process.kill()
        process.stdout.close()
    if outcome.failed is None and status:
        outcome.timed_out = late.is_set() or status == -24  # SIGXCPU
        if not outcome.timed_out:
            outcome.failed = running or f"a test of {program.name} that ended it"
    return outcome


def names(program: Program, skipped: list) -> list:
    listing = subprocess.run(
        [program.path, "--list", "--format=terse"], cwd=program.folder, check=True, stdout=subprocess.PIPE, text=True
    )
    found = [line.removesuffix(": test") for line in listing.stdout.splitlines() if line.endswith(": test")]
    return [name for name in found if not any(word in name for word in skipped)]


class Tests:
    """The tests there are and how long each takes; of every room, in which order they run."""

    def __init__(self, programs: list, skipped: list):
        self.tests = [(program, name) for program in programs for name in names(program, skipped)]
        self.seconds = {}
        self.killers = defaultdict(lambda: deque(maxlen=4))
        for program in programs:
            own = [name for of, name in self.tests if of is program]
            outcome = execute(program, own, 0, 600)
            if not outcome.good() or outcome.seconds.keys() != set(own):
                raise SystemExit(f"{program.name}, without any mutant: {outcome.failed or 'not all tests ran'}")
            self.seconds |= {(program.name, name): took for name, took in outcome.seconds.items()}

    def steps(self, words: list):
        """Lists of tests to run one after another: those of the room first, each time the quick ones first."""
        own = [pair for pair in self.tests if any(word in pair[1] for word in words)]
        other = [pair for pair in self.tests if pair not in own]
        for tests in (own, other):
            after = 0.0
            for until in STEPS:
                step = defaultdict(list)
                for program, name in tests:
                    if after <= self.seconds[program.name, name] < until:
                        step[program].append(name)
                yield from step.items()
                after = until

    def judge(self, live: int, file: str, words: list) -> Outcome:
        """What becomes of a mutant: first the tests run that caught others of its file."""
        killers = self.killers[file]
        known = defaultdict(list)
        for program, name in list(killers):
            known[program].append(name)
        for program, tests in [*known.items(), *self.steps(words)]:
            usual = sum(self.seconds[program.name, name] for name in tests)
            outcome = execute(program, tests, live, SPARE + 4 * usual)
            if outcome.failed and (program.name, outcome.failed) in self.seconds:
                if (program, outcome.failed) not in killers:
                    killers.append((program, outcome.failed))
            if not outcome.good():
                return outcome
        return Outcome()
