#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Mistakes that shellcheck must find.
set -euo pipefail

# planted: SC2086
remove() {
	rm $1
}

# planted: SC2045
for file in $(ls); do
	remove "$file"
done
# planted: SC2115
rm -rf "$directory/"*
remove "$@"
