#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Print which tests reach a function, for generate.py, which describes the lines.

usage: reach.py SOURCES    with lines "TEST FILE" as input

FILE has gcov's results in JSON, one document a line, of the run of TEST alone. The first line of a function
is the one that the compiler names.
"""
import json
import sys
from pathlib import Path


def counts_of(path):
    """(file, function, its first line, line, whether it was executed) of every line with code."""
    for document in map(json.loads, Path(path).read_text().splitlines()):
        for file in document['files']:
            begins = {function['name']: function['start_line'] for function in file['functions']}
            for line in file['lines']:
                name = line.get('function_name')
                if name in begins:
                    yield file['file'], name, begins[name], line['line_number'], line['count'] > 0


def main(directory):
    reached = {}
    for test, path in map(str.split, sys.stdin):
        for file, name, begin, line, executed in counts_of(path):
            if directory in file:
                key = name, file.rpartition(directory)[2], line - begin
                tests = reached.setdefault(key, set())
                if executed:
                    tests.add(test)
    last = None
    for (name, file, offset), tests in sorted(reached.items()):
        found = (name, file, sorted(tests))
        if found != last:
            print(name, file, offset, ', '.join(found[2]) or '-')
        last = found


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
