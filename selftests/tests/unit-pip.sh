#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pip installs the Python package and each package of integrations/ from the tree, without a network:
# their modules, each where its engine imports it from, and nothing else.  Without pip, setuptools and wheel
# only the files that their pyproject.toml names are compared with the tree.
set -euo pipefail
cd "$(dirname "$0")/../.."
. selftests/lib/ktap.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# named FOLDER: what pyproject.toml installs is there, and nothing of the folder is left out.
named() {
	python3 - "$1" <<-'PYTHON'
	import glob, os, sys, tomllib
	folder = sys.argv[1]
	with open(f"{folder}/pyproject.toml", "rb") as file:
	    tool = tomllib.load(file)["tool"]["setuptools"]
	found = {f"{name}.py" for name in tool.get("py-modules", [])}
	for name in tool.get("packages", []):
	    path = tool.get("package-dir", {}).get(name, name)
	    found |= {os.path.relpath(one, folder) for one in glob.glob(f"{folder}/{path}/*.py")}
	there = {os.path.relpath(one, folder) for part in ("*.py", "nvmepeer/*.py") for one in glob.glob(f"{folder}/{part}")}
	sys.exit(f"{sorted(found ^ there)}" if found != there or not found else 0)
	PYTHON
}

# installed FOLDER FILE...: pip installs these files, equal to those of the tree.
installed() {
	local folder=$1 file
	shift
	rm -rf "$work/source" "$work/target"
	cp -r "$folder" "$work/source"
	python3 -m pip install -q --disable-pip-version-check --no-index --no-build-isolation --no-deps \
		--target "$work/target" "$work/source" >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
	for file; do
		cmp "$folder/${file##*/}" "$work/target/$file" 2>/dev/null ||
			cmp "$folder/$file" "$work/target/$file" || return
	done
	[[ $(find "$work/target" -name '*.py' | wc -l) == "$#" ]]
}

declare -A files=(
	[integrations/lmcache]=lmcache/v1/gpu_connector/gds_backends/nvmepeer.py
	[integrations/vllm]=nvmepeer_vllm.py
)
files[python]=$(cd python && echo nvmepeer/*.py)
for folder in python integrations/lmcache integrations/vllm; do
	ktap_check "$folder: its files are named" named "$folder"
	if python3 -c 'import setuptools, pip, wheel' 2>/dev/null; then
		# shellcheck disable=SC2086 # files are words
		ktap_check "$folder: pip installs it" installed "$folder" ${files[$folder]}
	else
		ktap_skip "$folder: pip installs it" "no pip, setuptools and wheel here"
	fi
done
ktap_end
