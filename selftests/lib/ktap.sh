# SPDX-License-Identifier: GPL-2.0-only
# KTAP output of shell tests. Sourced.
#
#   . /selftests/lib/ktap.sh
#   ktap_check NAME COMMAND [ARG...]      passes if COMMAND returns 0
#   ktap_is NAME GOT EXPECTED             passes if they are equal
#   ktap_skip NAME REASON
#   ktap_result STATUS NAME [REASON]      passes if STATUS is 0, skipped if it is 4
#   ktap_end                              must be last; exits 0 or 1

ktap_count=0
ktap_failed=0
echo "TAP version 13"

ktap_result() {
	ktap_count=$((ktap_count + 1))
	case $1 in
	0) echo "ok $ktap_count $2" ;;
	4) echo "ok $ktap_count $2 # SKIP ${3:-}" ;;
	*)
		ktap_failed=$((ktap_failed + 1))
		echo "not ok $ktap_count $2"
		;;
	esac
}

# The output of a command is printed only if it failed, as comment lines. Its status 4 is a
# failure as well.
ktap_check() {
	local name=$1 output status=0
	shift
	output=$("$@" 2>&1 </dev/null) || status=$?
	ktap_result $((status != 0)) "$name"
	((status == 0)) || printf '%s\n' "$* returned $status" "$output" | head -n 30 | sed 's/^/# /'
}

ktap_same() {
	echo "Expected '$2', got '$1'"
	[[ $1 == "$2" ]]
}

ktap_is() {
	ktap_check "$1" ktap_same "$2" "$3"
}

ktap_skip() {
	ktap_result 4 "$@"
}

ktap_end() {
	echo "1..$ktap_count"
	exit $((ktap_failed > 0))
}
