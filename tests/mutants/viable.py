"""Which mutants compile: in the source with switches, and by themselves."""

import re
from collections import defaultdict

from switch import Host, hosts, switched, together
from tree import Tree, Unattributed

CALLED = re.compile(r"`(?:[^`]*::)?(\w+)(?:::<[^`]*>)?`")


class Project:
    """The sources and the functions with mutants of a run."""

    def __init__(self, root, mutants: list):
        by_file = defaultdict(list)
        for mutant in mutants:
            by_file[mutant.file].append(mutant)
        self.sources = {file: (root / file).read_text() for file in by_file}
        self.hosts = [host for file, own in by_file.items() for host in hosts(file, self.sources[file], own)]
        inside = {mutant.number for host in self.hosts for mutant in host.mutants}
        self.outside = [mutant for mutant in mutants if mutant.number not in inside]
        """In the value of a constant or in a type: no switch can stand there."""

    def host_of(self, mutant) -> Host | None:
        return next((host for host in self.hosts if mutant in host.mutants), None)


def write_switched(project: Project, tree: Tree, live: list) -> dict:
    copies = {}
    for file, source in project.sources.items():
        text, copies[file] = switched(source, [host for host in live if host.file == file])
        tree.write(file, text)
    return copies


def found_at(copies: dict, places: list) -> tuple:
    """Host and mutant of the first place that has a host."""
    for file, line, _ in places:
        if file in copies and (found := copies[file].at(line))[0]:
            return found
    return None, None


def switch_all(project: Project, tree: Tree, say) -> tuple:
    """Writes the tree with a switch wherever there can be one: the mutants behind switches, and the others.

    What the compiler objects to is taken out until it has no objection: the mutant in whose copy of the body it is, all
    mutants of a function if it is elsewhere in the function, and those of a constant function that constants need.
    """
    live = [Host(host.file, host.name, host.span, host.body, host.const, list(host.mutants)) for host in project.hosts]
    total = sum(len(host.mutants) for host in live)
    while True:
        live = [host for host in live if host.mutants]
        copies = write_switched(project, tree, live)
        errors = tree.check()
        in_switches = [mutant for host in live for mutant in host.mutants]
        say(f"{len(in_switches)} of {total} mutants behind switches, {len(errors)} complaints of the compiler")
        if not errors:
            numbers = {mutant.number for mutant in in_switches}
            inside = [mutant for host in project.hosts for mutant in host.mutants]
            return in_switches, [mutant for mutant in inside if mutant.number not in numbers]
        for message, code, places in errors:
            host, mutant = found_at(copies, places)
            if code == "E0015" and (name := CALLED.search(message)) and not mutant:
                needed = [host for host in live if host.const and host.name == name[1]]
                if not needed:
                    raise Unattributed(f"{message}: {places[:1]}")
                for host in needed:
                    host.mutants.clear()
            elif mutant:
                host.mutants[:] = [other for other in host.mutants if other is not mutant]
            elif host:
                host.mutants.clear()
            else:
                raise Unattributed(f"{message}: {places[:1]}")


def sort_out(project: Project, tree: Tree, left: list, say) -> tuple:
    """Which of these compile by themselves, and which do not.

    Bodies of functions are checked apart from each other, so one check takes a mutant of every function. Those of
    constant functions come one by one: constants anywhere may be computed with them.
    """
    waiting, good, bad = defaultdict(list), [], []
    for mutant in left:
        host = project.host_of(mutant)
        waiting[(host.file, host.span)].append((host, mutant))
    alone = [pair for pairs in waiting.values() for pair in pairs if pair[0].const]
    queues = [pairs for pairs in waiting.values() if not pairs[0][0].const]
    rounds = [[pairs[place] for pairs in queues if place < len(pairs)] for place in range(max(map(len, queues), default=0))]
    rounds += [[pair] for pair in alone]
    for number, batch in enumerate(rounds, 1):
        say(f"which compile by themselves: {number} of {len(rounds)}, {len(batch)} at once")
        while batch:
            wrong = complaints(project, tree, batch)
            if not wrong:
                good += [mutant for _, mutant in batch]
                break
            bad += [mutant for _, mutant in batch if mutant.number in wrong]
            batch = [pair for pair in batch if pair[1].number not in wrong]
    for file in project.sources:
        tree.restore(file)
    return sorted(good, key=lambda mutant: mutant.number), bad


def complaints(project: Project, tree: Tree, batch: list) -> set:
    """The numbers of the mutants of this batch which the compiler objects to."""
    copies = {}
    for file, source in project.sources.items():
        text, copies[file] = together(source, [pair for pair in batch if pair[0].file == file])
        tree.write(file, text)
    wrong = set()
    for message, _, places in tree.check():
        mutant = found_at(copies, places)[1]
        if mutant is None and len(batch) == 1:
            mutant = batch[0][1]
        if mutant is None:
            raise Unattributed(f"{message}: {places[:1]}")
        wrong.add(mutant.number)
    return wrong
