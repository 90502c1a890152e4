#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Break C sources by rules that name a function and the kind of change.

usage: mutate.py split LIST SOURCES WORK     for selftests/lib/rules.sh, which says what is written
       mutate.py apply SOURCES TREE WORK NUMBER...
       mutate.py copy SOURCE TREE           the files that differ, but not build/ and .git

A rule is two lines of LIST, or three:

    NAME: what is broken
    <tab>FUNCTION [TEST, ...]: KIND WORD... => NEW
    <tab>~ why no test can distinguish the mutant from the original; then there are no tests

FUNCTION is a function below SOURCES, or another definition: a variable with an initializer, an
enumerator, or the first of several arguments of a macro call at file level. Where several files
define it: "FUNCTION in FILE". Sources are compared by their C tokens: white space, comments and
line breaks are irrelevant, and preprocessor lines are ignored.

KIND says what is replaced by NEW. It is the only place of that kind in FUNCTION with all the
WORDs, which are tokens in any order; the innermost one, where such places are nested. "#K" behind
the WORDs takes the K-th place instead.

    drop          a statement (no "=> NEW"): { } replaces it
    statement     a statement with its semicolon
    before after  NEW is inserted before or after a statement
    case          a case label with its colon
    if while for  the condition of such a statement
    return        the value that a return statement returns
    operand       an operand of && or ||; without "=> NEW" its operator is removed as well
    set           the right side of an assignment or initializer
    call          a call; the first WORD is the function
    arg N         argument N of a call; the first WORD is the function
    token         a single token: there is one WORD
    text          the tokens of WORDs in this order
"""
import filecmp
import os
import re
import shutil
import sys
from pathlib import Path

TOKEN = re.compile(r'''
    (?P<skip> \s+ | //[^\n]* | /\*.*?\*/ | ^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])* )
  | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'
  | \.?\d(?:[eEpP][+-]|[\w.])* | [A-Za-z_]\w*
  | >>= | <<= | \.\.\. | -> | \+\+ | -- | << | >> | [-+*/%&|^<>=!]= | && | \|\| | .
''', re.X | re.S | re.M)
WORD = re.compile(r'[A-Za-z_]\w*')
CLOSING = {'(': ')', '[': ']', '{': '}'}
CONTROL = re.compile(r'if|while|for|switch|\w*for_each\w*|scoped_guard')
ASSIGNMENT = {'=', '+=', '-=', '*=', '/=', '%=', '&=', '|=', '^=', '<<=', '>>='}
KINDS = ('drop statement before after case if while for return operand set call arg token text').split()


class Misfit(Exception):
    """A rule does not fit the sources, or is not a rule."""


class Source:
    """A file as tokens: text, and where each begins and ends."""

    def __init__(self, text):
        self.text = text
        found = [match for match in TOKEN.finditer(text) if match.group('skip') is None]
        self.tokens = [match.group() for match in found]
        self.begins = [match.start() for match in found]
        self.ends = [match.end() for match in found]
        self.close = self.pairs()

    def pairs(self):
        """The index of the closing bracket of each opening one."""
        close, stack = {}, []
        for i, token in enumerate(self.tokens):
            if token in CLOSING:
                stack.append(i)
            elif token in CLOSING.values() and stack and CLOSING[self.tokens[stack[-1]]] == token:
                close[stack.pop()] = i
        return close

    def definitions(self):
        """Name, first and last token of everything that is defined at file level."""
        tokens, i, first = self.tokens, 0, 0
        while i < len(tokens):
            if tokens[i] == '{' and tokens[i - 1].startswith('"'):  # extern "C"
                i, first = i + 1, i + 1
                continue
            is_body = tokens[i] == '{' and tokens[i - 1] == ')'
            i = self.close.get(i, i)
            if tokens[i] == ';' or is_body or tokens[i] == '}' and first == i:
                for name in self.names(first, i):
                    yield name, first, i
                first = i + 1
            i += 1

    def names(self, first, last):
        """What tokens first to last define; a prototype defines nothing."""
        tokens, i, names, macro = self.tokens, first, [], None
        value = body = False
        while i <= last:
            if WORD.fullmatch(tokens[i]) and i < last:
                if tokens[i + 1] == '(' and tokens[i].isupper() and macro is None and tokens[i + 3] == ',':
                    macro = tokens[i + 2]
                if tokens[i + 1] in ('(', '[', '='):
                    names.append(tokens[i])
            value |= tokens[i] == '='
            if tokens[i] == '{':
                body |= tokens[i - 1] == ')'
                if 'enum' in tokens[first:i] and '(' not in tokens[first:i]:
                    return [tokens[j] for j in range(i, self.close[i]) if WORD.fullmatch(tokens[j]) and tokens[j + 1] in ('=', ',', '}')]
            i = self.close.get(i, i) + 1
        if value or body:
            return names
        return [macro] if macro else []


class Places:
    """What a rule can name between two tokens, by kind: (first, last) of each place."""

    def __init__(self, source, first, last):
        self.source, self.tokens, self.first, self.last = source, source.tokens, first, last

    def of(self, kind):
        if kind in ('if', 'while', 'for'):
            return list(self.conditions(kind))
        if kind in ('drop', 'before', 'after'):
            kind = 'statement'
        return list(getattr(self, {'return': 'returned'}.get(kind, kind))())

    def returned(self):
        for i in self.all('return'):
            yield i + 1, self.until(i, (';',)) - 1

    def statement(self):
        tokens, close, i, begin = self.tokens, self.source.close, self.first, None
        while i <= self.last:
            token = tokens[i]
            if begin is None:
                if token in ('{', '}', ';', 'else', 'do') or i + 1 <= self.last and tokens[i + 1] == ':':
                    i += 2 if tokens[i + 1:i + 2] == [':'] else 1
                elif token in ('case', 'default'):
                    while tokens[i] != ':':
                        i += 1
                    i += 1
                elif CONTROL.fullmatch(token):
                    i = close[i + 1] + 1
                else:
                    begin = i
                continue
            if token == '{' and tokens[i - 1] == ')' and tokens[begin] != 'return' and '=' not in tokens[begin:i]:
                begin = None  # the body of the function
                continue
            if token == ';':
                yield begin, i
                begin = None
            i = close.get(i, i) + 1

    def case(self):
        for i in self.all('case'):
            yield i, self.until(i, (':',))

    def conditions(self, keyword):
        for i in self.all(keyword):
            first, last = i + 2, self.source.close[i + 1] - 1
            if keyword == 'for':
                first = self.until(first, (';',)) + 1
                last = self.until(first, (';',)) - 1
            yield first, last

    def call(self):
        for i in range(self.first, self.last):
            if WORD.fullmatch(self.tokens[i]) and self.tokens[i + 1] == '(' and not CONTROL.fullmatch(self.tokens[i]):
                yield i, self.source.close[i + 1]

    def arguments(self, call):
        first, last = call[0] + 2, call[1]
        while first < last:
            end = self.until(first, (',', ')'))
            yield first, end - 1
            first = end + 1

    def operand(self):
        seen = set()
        for i in [*self.all('&&'), *self.all('||')]:
            first = i - 1
            opening = {close: opened for opened, close in self.source.close.items()}
            first = opening.get(first, first)
            stops = {'&&', '||', ',', ';', '?', ':', 'return', '{', '(', '['} | ASSIGNMENT
            while self.tokens[first - 1] not in stops:
                first = opening.get(first - 1, first - 1)
            seen.add((first, i - 1))
            seen.add((i + 1, self.until(i + 1, ('&&', '||', ',', ';', '?', ':', ')', ']', '}')) - 1))
        return sorted(seen)

    def set(self):
        for i in range(self.first, self.last):
            if self.tokens[i] in ASSIGNMENT:
                yield i + 1, self.until(i + 1, (',', ';', ')', '}')) - 1

    def words_of(self, kind, place):
        """The tokens that name a place: of an assignment both sides."""
        first, last = place
        if kind == 'set':
            first -= 1
            while self.tokens[first - 1] not in ('{', '}', ';', ',', '(', ')', ':'):
                first -= 1
        if kind == 'return':
            first -= 1
        return self.tokens[first:last + 1]

    def all(self, token):
        return [i for i in range(self.first, self.last + 1) if self.tokens[i] == token]

    def until(self, i, stops):
        while self.tokens[i] not in stops:
            i = self.source.close.get(i, i) + 1
        return i


def tokens_of(text):
    return Source(text).tokens


class Change:
    """KIND WORD... => NEW, and where it applies."""

    def __init__(self, text):
        left, arrow, new = text.partition('=>')
        self.kind, *rest = left.split(None, 1)
        self.new = new.strip()
        rest = rest[0].strip() if rest else ''
        if self.kind not in KINDS:
            raise Misfit('no kind of change: ' + self.kind)
        if self.kind != 'text' and not arrow and self.kind not in ('drop', 'operand', 'case'):
            raise Misfit('no "=> NEW"')
        self.is_removed = not arrow
        number = re.search(r'#(\d+)$', rest)
        self.which = int(number.group(1)) if number else None
        rest = rest[:number.start()] if number else rest
        self.argument = None
        if self.kind == 'arg':
            argument, rest = rest.split(None, 1)
            self.argument = int(argument)
        self.words = tokens_of(rest)

    def range(self, source, first, last):
        """The first and the last token of the only place."""
        places = Places(source, first, last)
        if self.kind in ('token', 'text'):
            count = len(self.words)
            found = [(i, i + count - 1) for i in range(first, last - count + 2)
                     if source.tokens[i:i + count] == self.words]
        else:
            kind = 'call' if self.kind == 'arg' else self.kind
            found = [place for place in places.of(kind) if self.fits(places, kind, place)]
        found = [outer for outer in found
                 if not any(inner != outer and outer[0] <= inner[0] and inner[1] <= outer[1] for inner in found)]
        if self.which is not None:
            found = found[self.which - 1:self.which]
        if len(found) != 1:
            raise Misfit('fits %d times, not once' % len(found))
        if self.argument is None:
            return found[0]
        arguments = list(places.arguments(found[0]))
        if self.argument > len(arguments):
            raise Misfit('no argument %d' % self.argument)
        return arguments[self.argument - 1]

    def fits(self, places, kind, place):
        has = places.words_of(kind, place)
        return set(self.words) <= set(has) and (kind != 'call' or not self.words or has[0] == self.words[0])

    def edit(self, source, first, last):
        """From where to where in the text, and what stands there then."""
        first, last = self.range(source, first, last)
        begin, end, new = source.begins[first], source.ends[last], self.new
        if self.kind == 'drop':
            new = '{ }'
        elif self.kind == 'before':
            end, new = begin, new + ' '
        elif self.kind == 'after':
            begin, new = end, ' ' + new
        elif self.kind == 'operand' and self.is_removed:
            if source.tokens[first - 1] in ('&&', '||'):
                begin = source.begins[first - 1]
            else:
                end = source.ends[last + 1]
        # Lines below keep their numbers, which objects of unchanged code contain.
        return begin, end, new + '\n' * (source.text.count('\n', begin, end) - new.count('\n'))


class Rule:
    """One rule of a list."""

    def __init__(self, name):
        self.name, self.function, self.tests, self.change, self.equivalent = name, None, [], None, None

    def parse(self, line):
        match = re.fullmatch(r'(\w+)(?: in ([\w./-]+))?(?: \[(.*?)\])?: (.*)', line)
        if not match:
            raise Misfit('not a line of a rule: ' + line)
        self.function, self.file = match.group(1), match.group(2)
        self.tests = [test.strip() for test in (match.group(3) or '').split(',') if test.strip()]
        self.change = match.group(4)

    def edit(self, sources):
        """The file, and what Change.edit says."""
        if self.change is None:
            raise Misfit('names no function')
        found = [place for place in sources.definitions.get(self.function, []) if self.file in (None, place[0])]
        if len(found) != 1:
            raise Misfit('%s: %d definitions, not one' % (self.function, len(found)))
        file, first, last = found[0]
        return file, Change(self.change).edit(sources.files[file], first, last)


class Sources:
    """All C files below a directory."""

    def __init__(self, directory):
        self.files, self.definitions = {}, {}
        for path in sorted(Path(directory).rglob('*.[ch]')):
            file = str(path.relative_to(directory))
            self.files[file] = Source(path.read_text())
            for name, first, last in self.files[file].definitions():
                self.definitions.setdefault(name, []).append((file, first, last))


def read_rules(path):
    rules = []
    for number, line in enumerate(Path(path).read_text().split('\n'), 1):
        if not line.strip() or line.startswith('#'):
            continue
        try:
            if not line.startswith('\t'):
                if not re.match(r'[\w-]+: ', line):
                    raise Misfit('no "NAME: what is broken"')
                rules.append(Rule(line))
            elif not rules:
                raise Misfit('no rule begins before this')
            elif line.startswith('\t~ '):
                rules[-1].equivalent = line[3:]
            else:
                rules[-1].parse(line[1:])
        except Misfit as reason:
            sys.exit('%s:%d: %s' % (path, number, reason))
    return rules


def split(path, directory, work):
    sources = Sources(directory)
    for number, rule in enumerate(read_rules(path), 1):
        into = Path(work, str(number))
        into.mkdir()
        into.joinpath('name').write_text(rule.name + '\n')
        if rule.equivalent:
            into.joinpath('equivalent').write_text(rule.equivalent + '\n')
        else:
            into.joinpath('tests').write_text(''.join(test + '\n' for test in rule.tests))
        try:
            file, (begin, end, new) = rule.edit(sources)
        except Misfit as reason:
            into.joinpath('misfit').write_text('%s\n' % reason)
            continue
        text = sources.files[file].text
        into.joinpath('file').write_text(file + '\n')
        into.joinpath('edit').write_text('%d %d %s\n' % (begin, end, new))
        into.joinpath('mutant').write_text(text[:begin] + new + text[end:])


def apply(directory, tree, work, *numbers):
    """All of these rules that touch different tokens; prints those that are left."""
    files = {}
    for number in numbers:
        file = Path(work, number, 'file').read_text().strip()
        begin, end, new = re.fullmatch(r'(\d+) (\d+) (.*)\n', Path(work, number, 'edit').read_text(), re.S).groups()
        edits = files.setdefault(file, [])
        if any(int(begin) <= other[1] and other[0] <= int(end) for other in edits):
            print(number)
        else:
            edits.append((int(begin), int(end), new))
    for file, edits in files.items():
        text = Path(directory, file).read_text()
        for begin, end, new in sorted(edits, reverse=True):
            text = text[:begin] + new + text[end:]
        Path(tree, file).write_text(text)


def copy(source, tree):
    for directory, inner, files in os.walk(source):
        if directory == source:
            inner[:] = [name for name in inner if name not in ('build', '.git')]
        into = Path(tree, os.path.relpath(directory, source))
        into.mkdir(parents=True, exist_ok=True)
        for name in files:
            file, to = Path(directory, name), into / name
            if name == '.git' or to.is_file() and filecmp.cmp(file, to, shallow=False):
                continue
            to.unlink(missing_ok=True)
            shutil.copy(file, to)


if __name__ == '__main__':
    commands = {'split': split, 'apply': apply, 'copy': copy}
    if len(sys.argv) < 4 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
