#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Generate mutation rules, for selftests/mutants/run and selftests/device/mutate.

usage: generate.py SOURCES RULES COUNT SEED PLAN [REACH...]

Writes COUNT rules in the form that mutate.py describes. Each changes one place of a function below
SOURCES by an operator:

    negate    the condition of an "if" or "while", or the value of a bool function; no condition of a
              message, here and below
    operand   removes an operand of && or ||
    boundary  < becomes <=, and so on
    drop      a statement; no declaration, message, assertion, barrier, pause, or last return or break
    flag      removes "| FLAG" or "FLAG |", but none of an allocation: it succeeds anyway
    bit       clears the lowest bit of a hexadecimal number, or the highest of GENMASK()
    swap      exchanges two neighbouring arguments of a call that have the same type
    return    replaces a statement by a return, of the value for success

Operators take turns, and each takes its places in an order that SEED and the text of the place
determine: a change of one function leaves the rules of the others as they are. A change that a rule of
RULES says to be equivalent is left out.

REACH are files of the tests that reach a function, in lines of two forms:

    FUNCTION FILE OFFSET TEST [ARGUMENT...], ...   from OFFSET lines behind its first, to the next
                                                   such line of that function; "-": no test
    FUNCTION TEST [ARGUMENT...], ...               any line; these tests come first

A rule has those tests and the tests that rules of the list RULES name for the function; if there are
none, those that the list names for functions of the file, but no unit tests: these compile only what
REACH names. PLAN has the tests that can run, in lines "TEST MILLISECONDS". A rule has all its unit tests,
and as many others as take 10 minutes together: first those that the list names, then those that reach
much of the file for their time, where a function that few tests reach counts more. They run fastest first,
so only a mutant that survives costs that time.
With PLAN "-" it has the first six, without regard to time, with an empty one unit tests only. Behind them it
has the fastest of them on the debug kernel, which sees accesses beyond the end, leaks, mappings that are left,
and calls that may sleep where none may; without an IOMMU, if no test reaches the line with one; and
what the list names in other cells for functions of the file. What has no tests is left out.
Numbers of places and of functions without tests are written to standard error.
"""
import hashlib
import itertools
import re
import sys
from pathlib import Path

import mutate

OPERATORS = ('negate', 'operand', 'boundary', 'drop', 'flag', 'bit', 'swap', 'early_return')
BOUNDARY = {'<': '<=', '<=': '<', '>': '>=', '>=': '>'}
MESSAGE = re.compile(r'(pr|dev|seq|trace)_\w+|lockdep_\w+|WARN\w*|BUILD_BUG\w*|might_\w+|static_assert')
FLAG = re.compile(r'(?!GFP_)[A-Z][A-Z0-9_]+')
BITS = re.compile(r'(0x[0-9a-fA-F]+)([uUlL]*)')
DECLARATION = re.compile(r'(?:const|static|struct|enum|union|unsigned) |\w+ (?:\* )*[A-Za-z_]\w* (?:[=;,[]|__free)')
SUCCESS = {'void': 'return;', 'bool': 'return false;'}
MOST_TESTS, MOST_TIME, START_TIME = 6, 600000, 5000
# Of those that run again in a cell that is several times as slow.
DEBUG_CELL, DEBUG_TIME = 'debug/on/root', 30000
# For lines that are not reached with an IOMMU.
OFF_CELL, OFF_TIME = '7/off/root', 60000
# Their first two arguments may be exchanged.
SYMMETRIC = ('nvmep_rings_overlap', 'nvmep_identifiers_clash', 'nvmep_ranges_check_queue',
             'nvmep_quarantine_overlaps', 'nvmep_same_subsystem', 'nvmep_identifiers_equal',
             'nvmep_quarantine_same', 'nvmep_host_known', 'nvmep_common_upstream')
# Without them nothing is different that a test on x86 or without their checker could see.
UNSEEN = re.compile(r'(smp_|dma_)?[rw]?mb|array_index_nospec|cond_resched|cpu_relax|fallthrough'
                    r'|usleep_range|rwsem_(acquire_read|release)')


class Function:
    """The body of a function, and the changes of it as (change, its first token)."""

    def __init__(self, name, file, source, first, last):
        self.name, self.file, self.source, self.tokens, self.types_of = name, file, source, source.tokens, {}
        self.first, self.last = first, last
        self.body = next(i for i in range(first, last) if source.close.get(i) == last)
        self.head = source.tokens[first:self.body]
        self.places = mutate.Places(source, first, last)

    def text(self, first, last):
        return ' '.join(self.tokens[first:last + 1])

    def line(self, token):
        """How many lines a token is behind the first one of the function."""
        return self.source.text.count('\n', self.source.begins[self.head_at()], self.source.begins[token])

    def head_at(self):
        """The token that names the function, whose line a compiler reports."""
        return self.first + self.head.index(self.name) if self.name in self.head else self.first

    def is_initial(self):
        return '__init' in self.head or '__exit' in self.head

    def numbered(self, kind):
        """Number and range of each place, as mutate.py counts them: none that contains another."""
        found = self.places.of(kind)
        inner = [outer for outer in found
                 if not any(place != outer and outer[0] <= place[0] and place[1] <= outer[1] for place in found)]
        return enumerate(inner, 1)

    def each(self, pattern):
        """Number among its equals and index of each token of the body that matches."""
        seen = {}
        for i in range(self.first, self.last):
            token = self.tokens[i]
            seen[token] = seen.get(token, 0) + 1
            if i > self.body and pattern(token):
                yield seen[token], i

    def statements(self):
        for number, (first, last) in self.numbered('drop'):
            words = self.tokens[first:last + 1]
            is_jump = words[0] in ('return', 'goto')
            if self.body < first < last and (is_jump or not DECLARATION.match(' '.join(words))) and not MESSAGE.fullmatch(words[0]):
                yield number, first, last, words

    def only_says(self, token):
        """Whether a token is in a condition on which only a message depends."""
        for _, (first, last) in self.numbered('if'):
            call = last + 2
            if first <= token <= last and MESSAGE.fullmatch(self.tokens[call]):
                return self.tokens[self.source.close[call + 1] + 2] != 'else'
        return False

    def negate(self):
        kinds = ['if', 'while'] + (['return'] if self.returns() == SUCCESS['bool'] else [])
        for kind in kinds:
            for number, (first, last) in self.numbered(kind):
                if self.text(first, last) not in ('true', 'false', '1', '0') and not self.only_says(first):
                    yield '%s #%d => !(%s)' % (kind, number, self.text(first, last)), first

    def operand(self):
        for number, (first, _) in self.numbered('operand'):
            if not self.only_says(first):
                yield 'operand #%d' % number, first

    def boundary(self):
        for number, i in self.each(BOUNDARY.__contains__):
            if not self.only_says(i):
                yield 'token %s #%d => %s' % (self.tokens[i], number, BOUNDARY[self.tokens[i]]), i

    def drop(self):
        for number, first, last, words in self.statements():
            is_last = last + 1 == self.last or words[0] == 'break' and self.tokens[last + 1] == '}'
            if not (is_last and words[0] in ('return', 'break')) and not UNSEEN.fullmatch(words[0]):
                yield 'drop #%d' % number, first

    def flag(self):
        seen = {}
        for i in range(self.first, self.last):
            for flag, other in ((i + 1, i), (i, i + 1)):
                if not FLAG.fullmatch(self.tokens[flag]) or self.tokens[other] != '|':
                    continue
                words = self.text(i, i + 1)
                seen[words] = number = seen.get(words, 0) + 1
                if i > self.body and '(' not in self.tokens[flag + 1] and (flag > i or self.tokens[i - 1] in ('(', '=', ',', 'return')):
                    yield 'text %s #%d => ' % (words, number), i

    def bit(self):
        for number, i in self.each(BITS.fullmatch):
            digits, suffix = BITS.fullmatch(self.tokens[i]).groups()
            value = int(digits, 16)
            if value:
                yield 'token %s #%d => %#x%s' % (self.tokens[i], number, value & (value - 1), suffix), i
        calls = [call for _, call in self.numbered('call') if self.tokens[call[0]] == 'GENMASK']
        for number, call in enumerate(calls, 1):
            highest = self.text(*next(self.places.arguments(call)))
            yield 'arg 1 GENMASK #%d => %s - 1' % (number, highest), call[0]

    def parameter_types(self):
        opening = self.head.index(self.name) + 1 if self.name in self.head else len(self.head)
        parameters = ' '.join(self.head[opening + 1:-1]).split(' , ')
        return [' '.join(re.findall(r'\w+|\*', parameter)[:-1]) for parameter in parameters]

    def swap(self):
        for number, call in self.numbered('call'):
            types = self.types_of.get(self.tokens[call[0]], [])
            if call[0] < self.body or self.tokens[call[0]] in SYMMETRIC:
                continue
            arguments = [self.text(*argument) for argument in self.places.arguments(call)]
            for i in range(min(len(arguments), len(types)) - 1):
                if types[i] == types[i + 1] and arguments[i] != arguments[i + 1]:
                    swapped = arguments[:i] + [arguments[i + 1], arguments[i]] + arguments[i + 2:]
                    yield 'call #%d => %s(%s)' % (number, self.tokens[call[0]], ', '.join(swapped)), call[0]

    def returns(self):
        before = self.head[:self.head.index(self.name)] if self.name in self.head else []
        if '*' in before:
            return 'return NULL;'
        return next((SUCCESS[word] for word in before if word in SUCCESS), 'return 0;')

    def early_return(self):
        for number, first, _, words in self.statements():
            if words[0] not in ('return', 'goto', 'break', 'continue'):
                yield 'statement #%d => { %s }' % (number, self.returns()), first


def functions_of(sources):
    for name, places in sources.definitions.items():
        for file, first, last in places:
            source = sources.files[file]
            # A rule cannot name one of several in a file, of which a compiler sees one.
            if [place[0] for place in places].count(file) == 1 and source.tokens[last] == '}' and any(source.close.get(i) == last and source.tokens[i - 1] == ')'
                                                  for i in range(first, last)):
                yield Function(name, file, source, first, last)


def split_tests(text):
    return [test.strip() for test in text.split(',')]


class Reach:
    """Which tests are for a place of a function."""

    def __init__(self, sources, rules, plan, files):
        self.times = None
        if plan != '-':
            self.times = {name: int(time) for name, time in map(str.split, Path(plan).read_text().splitlines())}
        self.by_line, self.by_function, self.named, self.named_in, self.share = {}, {}, {}, {}, {}
        for rule in mutate.read_rules(rules):
            if rule.equivalent or not rule.function:
                continue
            for file, *_ in sources.definitions.get(rule.function, []):
                for test in rule.tests:
                    if rule.file in (None, file):
                        self.named.setdefault((rule.function, file), []).append(test)
                        # A unit test need not compile all of the file.
                        if not test.endswith(' unit'):
                            self.named_in.setdefault(file, []).append(test)
        for line in (line for path in files for line in Path(path).read_text().splitlines()):
            words = line.split(None, 3)
            if len(words) == 4 and words[2].isdigit():
                tests = [] if words[3] == '-' else split_tests(words[3])
                self.by_line.setdefault((words[0], words[1]), []).append((int(words[2]), tests))
            else:
                name, tests = line.split(None, 1)
                self.by_function.setdefault(name, []).extend(split_tests(tests))

        for (_, file), lines in self.by_line.items():
            tests = {test for _, some in lines for test in some}
            for test in tests:
                self.share[test, file] = self.share.get((test, file), 0) + 1 / len(tests)

    def reaching(self, function, token):
        lines = self.by_line.get((function.name, function.file), [])
        tests = max((entry for entry in lines if entry[0] <= function.line(token)), default=(0, []))[1]
        return sorted(tests, key=lambda test: (-self.share[test, function.file] / (self.time(test) + START_TIME), test))

    def time(self, test):
        return (self.times or {}).get(test.split()[0], 0)

    def of(self, function, token):
        key = function.name, function.file
        reaching = self.reaching(function, token)
        found = self.named.get(key, []) + (reaching or self.most([test for _, tests in self.by_line.get(key, []) for test in tests]))
        if function.is_initial():
            found = found + ['template']
        units = self.by_function.get(function.name, [])
        if not found and not units:
            found = self.most(self.named_in.get(function.file, []))
        return self.affordable(list(dict.fromkeys(units + found)))

    @staticmethod
    def most(tests):
        """Each once, and first what is there most often."""
        return sorted(set(tests), key=lambda test: (-tests.count(test), test))

    def affordable(self, tests):
        if self.times is None:
            return tests[:MOST_TESTS]
        units = [test for test in tests if test.endswith(' unit')]
        return units + self.within(MOST_TIME, [test.split()[0] for test in tests if test not in units])

    def within(self, most, tests):
        """The first, and of the next ones those that take no longer together; fastest first."""
        chosen, time = {}, 0
        for test in tests:
            if test in self.times and test not in chosen and (not chosen or time + self.times[test] <= most):
                chosen[test] = self.times[test]
                time += self.times[test]
        return sorted(chosen, key=chosen.get)

    def again(self, function, token, tests):
        """Those of a place that run in other cells too."""
        if not self.times:
            return []
        names = sorted((test for test in tests if test in self.times), key=self.times.get)
        cells = [(DEBUG_CELL, DEBUG_TIME)]
        if (function.name, function.file) in self.by_line and not self.reaching(function, token):
            cells.append((OFF_CELL, OFF_TIME))
        found = ['%s %s' % (test, cell) for cell, most in cells for test in self.within(most, names)]
        elsewhere = [test for test in self.named_in.get(function.file, []) if ' ' in test]
        return list(dict.fromkeys(found + elsewhere))


def places_of(functions, reach, seed):
    """By operator, in the order of the seed: where, tests and change of each place; and functions without tests."""
    found, untested = {operator: [] for operator in OPERATORS}, set()
    for function in functions:
        for operator in OPERATORS:
            for change, token in getattr(function, operator)():
                tests = reach.of(function, token)
                if not tests:
                    untested.add((function.name, function.file))
                    continue
                tests = tests + reach.again(function, token, tests)
                text = ' '.join((seed, function.name, function.file, change, function.text(token, token + 3)))
                key = hashlib.sha256(text.encode()).hexdigest()
                found[operator].append((key, function, tests, change))
    return {operator: sorted(places, key=lambda place: place[0]) for operator, places in found.items()}, untested


def changed(rule, sources):
    """The file that a rule changes, and its tokens then."""
    file, (begin, end, new) = rule.edit(sources)
    text = sources.files[file].text
    return file, mutate.Source(text[:begin] + new + text[end:]).tokens


def equivalent_in(rules, sources):
    found = {}
    for rule in mutate.read_rules(rules):
        if rule.equivalent:
            found.setdefault(rule.function, []).append(changed(rule, sources))
    return found


def is_known(equivalent, function, change, sources):
    if function.name not in equivalent:
        return False
    rule = mutate.Rule('')
    rule.parse('%s in %s: %s' % (function.name, function.file, change))
    return changed(rule, sources) in equivalent[function.name]


def main(directory, rules, count, seed, plan, *reach):
    sources = mutate.Sources(directory)
    functions = list(functions_of(sources))
    types = {function.name: function.parameter_types() for function in functions}
    for function in functions:
        function.types_of = types
    places, untested = places_of(functions, Reach(sources, rules, plan, reach), seed)
    numbers = ', '.join('%s %d' % (name, len(found)) for name, found in places.items())
    print('generate: %d functions, %d have no tests; places: %s' % (len(functions), len(untested), numbers), file=sys.stderr)
    longest = max(map(len, places.values()))
    drawn = [(operator, places[operator][turn]) for turn in range(longest) for operator in OPERATORS
             if turn < len(places[operator])]
    equivalent = equivalent_in(rules, sources)
    drawn = (place for place in drawn if not is_known(equivalent, place[1][1], place[1][3], sources))
    for number, (operator, (_, function, tests, change)) in enumerate(itertools.islice(drawn, int(count)), 1):
        print('g%d: %s of %s in %s, seed %s\n\t%s in %s [%s]: %s' % (
            number, operator.replace('early_', ''), function.name, function.file, seed,
            function.name, function.file, ', '.join(tests), change))


if __name__ == '__main__':
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
