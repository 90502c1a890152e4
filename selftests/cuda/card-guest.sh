#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# In the guest of card.sh: the tests, then the demonstration, each with its output.
#
# usage: card-guest.sh SECONDS      of the demonstration, 0 for none
# prints "card: NAME STATUS" after each
set -u

part() {
	local name=$1 status=0
	shift
	"$@" || status=$?
	echo "card: $name $status"
}

part gpu_card /build/user/tests/gpu_card
part gpu_card_rate /build/user/tests/gpu_card_rate
# Its pairs have gone with the test; the controller is at its defaults.
(($1 == 0)) || part demo /selftests/demo/demo.sh "$1"
