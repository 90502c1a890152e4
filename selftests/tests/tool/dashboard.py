#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Problems of a Grafana dashboard for the metrics of nvme-peer.

usage: dashboard.py DASHBOARD METRICS

DASHBOARD is checked against the fields that Grafana's schema documents (its "dashboard JSON model"; types
and limits are those of kinds/dashboard in Grafana's sources), and its queries against METRICS, the output
of "nvme-peer metrics". Prints one line for each problem.
"""
import json
import re
import sys

# Field: (type, required). Fields that are not listed are problems, too: Grafana ignores them.
DASHBOARD = {
    "title": (str, True), "uid": (str, True), "schemaVersion": (int, True), "version": (int, False),
    "tags": (list, False), "refresh": (str, False), "time": (dict, True), "templating": (dict, True),
    "panels": (list, True), "description": (str, False),
}
VARIABLE = {
    "name": (str, True), "type": (str, True), "label": (str, False), "query": ((str, dict), True),
    "datasource": (dict, False), "multi": (bool, False), "includeAll": (bool, False), "refresh": (int, False),
}
PANEL = {
    "id": (int, True), "type": (str, True), "title": (str, True), "datasource": (dict, True),
    "gridPos": (dict, True), "fieldConfig": (dict, True), "targets": (list, True), "description": (str, False),
}
GRID = {"x": (int, True), "y": (int, True), "w": (int, True), "h": (int, True)}
SOURCE = {"type": (str, True), "uid": (str, True)}
TARGET = {"refId": (str, True), "expr": (str, True), "legendFormat": (str, False)}
CONFIG = {"defaults": (dict, True), "overrides": (list, True)}
VARIABLE_TYPES = {"query", "adhoc", "constant", "datasource", "interval", "textbox", "custom", "system"}
# Units of Grafana that suit these metrics.
UNITS = {"short", "iops", "Bps", "bytes", "percent", "celsius", "bool_on_off", "s"}
GRID_WIDTH = 24
# Variables that Grafana defines, and labels that Prometheus adds.
BUILT_IN = {"__rate_interval"}
ADDED_LABELS = {"instance", "job"}

problems = []


def problem(where, text):
    problems.append(f"{where}: {text}")


def check_fields(where, given, fields):
    """Returns whether all required fields are there, so that they can be used."""
    if not isinstance(given, dict):
        problem(where, "not an object")
        return False
    for name in given.keys() - fields.keys():
        problem(where, f"{name}: no such field")
    usable = True
    for name, (kind, required) in fields.items():
        if name not in given:
            if required:
                problem(where, f"{name}: missing")
                usable = False
        elif not isinstance(given[name], kind) or (kind is int and isinstance(given[name], bool)):
            problem(where, f"{name}: wrong type")
            usable = False
    return usable


def read_metrics(text):
    """Labels by name of each series."""
    labels = {}
    for line in text.splitlines():
        match = re.match(r"(nvme_peer_\w+)\{([^}]*)\}", line)
        if match:
            labels.setdefault(match[1], set()).update(re.findall(r'(\w+)="', match[2]))
    return labels


def check_query(where, query, legend, metrics, variables):
    names = re.findall(r"\bnvme_peer_\w+", query)
    if not names:
        problem(where, "queries no metric of nvme-peer")
    for pair in ("()", "[]", "{}"):
        if query.count(pair[0]) != query.count(pair[1]):
            problem(where, f"unbalanced {pair}")
    for name in names:
        if name not in metrics:
            problem(where, f"no metric {name}")
    known = set.union(ADDED_LABELS, *(metrics.get(name, set()) for name in names))
    used = re.findall(r"\{\{\s*(\w+)\s*\}\}", legend) + re.findall(r"[{,]\s*(\w+)\s*(?:=~|!~|!=|=)", query)
    for label in used:
        if label not in known:
            problem(where, f"no label {label}")
    for name in re.findall(r"\$\{?(\w+)", query):
        if name not in variables | BUILT_IN:
            problem(where, f"no variable {name}")
    # A counter is useful only as a change.
    for name in names:
        counter, changes = name.endswith("_total"), re.search(r"\b(rate|increase)\(\s*" + name, query)
        if counter != bool(changes):
            problem(where, f"{name}: rate() or increase() is for counters, and counters need it")


def check_source(where, source, variables):
    if check_fields(where, source, SOURCE) and source["uid"].strip("${}") not in variables:
        problem(where, f"no variable for data source {source['uid']}")


def check_panel(panel, metrics, variables):
    where = f"panel {panel.get('id')}"
    if not check_fields(where, panel, PANEL):
        return None
    check_source(where, panel["datasource"], variables)
    if check_fields(where, panel["fieldConfig"], CONFIG):
        unit = panel["fieldConfig"]["defaults"].get("unit")
        if unit not in UNITS:
            problem(where, f"unit {unit}")
    ids = [target.get("refId") for target in panel["targets"]]
    if not ids or len(ids) != len(set(ids)):
        problem(where, "no targets, or two with one refId")
    for target in panel["targets"]:
        if check_fields(where, target, TARGET):
            check_query(where, target["expr"], target.get("legendFormat", ""), metrics, variables)
    grid = panel["gridPos"]
    if not check_fields(where, grid, GRID):
        return None
    if grid["x"] < 0 or grid["y"] < 0 or grid["w"] < 1 or grid["h"] < 1 or grid["x"] + grid["w"] > GRID_WIDTH:
        problem(where, "outside the grid")
    return {(x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])}


def check_variables(templating, metrics):
    variables = {variable.get("name") for variable in templating.get("list", [])}
    for variable in templating.get("list", []):
        where = f"variable {variable.get('name')}"
        if not check_fields(where, variable, VARIABLE):
            continue
        if variable["type"] not in VARIABLE_TYPES:
            problem(where, f"type {variable['type']}")
        if "datasource" in variable:
            check_source(where, variable["datasource"], variables)
        query = variable["query"] if isinstance(variable["query"], str) else variable["query"].get("query", "")
        for name, label in re.findall(r"label_values\(\s*(\w+)\s*,\s*(\w+)\s*\)", query):
            if label not in metrics.get(name, set()) | ADDED_LABELS or name not in metrics:
                problem(where, f"no metric {name} with label {label}")
    return variables


def main():
    with open(sys.argv[1]) as file:
        try:
            dashboard = json.load(file)
        except ValueError as error:
            sys.exit(f"not JSON: {error}")
    with open(sys.argv[2]) as file:
        metrics = read_metrics(file.read())
    if check_fields("dashboard", dashboard, DASHBOARD):
        variables = check_variables(dashboard["templating"], metrics)
        ids = [panel.get("id") for panel in dashboard["panels"]]
        if not ids or len(ids) != len(set(ids)):
            problem("dashboard", "no panels, or two with one id")
        taken = set()
        for panel in dashboard["panels"]:
            places = check_panel(panel, metrics, variables) or set()
            if taken & places:
                problem(f"panel {panel['id']}", "over another panel")
            taken |= places
    print("\n".join(problems))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
