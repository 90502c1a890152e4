#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# In the guest of card.sh: run the tests, then the demonstration, with their output.
#
# usage: card-guest.sh SECONDS ROUNDS COMMANDS SOAK_SECONDS READS PART...      see card.sh
# prints "card: NAME STATUS" after each
set -u

seconds=$1 commands=$3 soak=$4 reads=$5
export CARD_ROUNDS=$2
shift 5

run() {
	case $1 in
	gpu_card_modes) /build/user/tests/gpu_card_modes "$reads" "$soak" ;;
	gpu_card_soak) /build/user/tests/gpu_card_soak "$commands" "$soak" ;;
	# The queue pairs of the tests are gone; the controller has its defaults.
	demo) /selftests/demo/demo.sh "$seconds" ;;
	*) "/build/user/tests/$1" ;;
	esac
}

for part; do
	status=0
	began=$SECONDS
	run "$part" || status=$?
	echo "card: $part $status"
	echo "card: $part took $((SECONDS - began)) s"
done
