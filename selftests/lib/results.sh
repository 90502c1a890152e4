# SPDX-License-Identifier: GPL-2.0-only
# Parse the KTAP output of tests and the kernel log. Sourced by selftests/run and
# selftests/check.
#
# A results file has one line for each test: "PASSED FAILED SKIPPED CELL NAME", with the
# message of a failed one. $np_results is that of the whole run.

# Messages of the kernel that fail a run.
kernel_complaints='BUG:|kernel BUG at|list_(add|del) corruption|WARNING:|Oops|KASAN|KFENCE|UBSAN|possible circular locking|inconsistent lock state|INFO: task .* blocked for more|rcu.*stall|DMAR: \[DMA|DMAR: DRHD: handling fault|DMA-API:|unreferenced object|general protection fault|Call Trace'
# Messages of every emulated machine.
harmless='DMAR: \[Firmware Bug\]|Firmware Bug|WARNING: .*mitigation'

# count_ktap FILE STATUS: "passed failed skipped" of one test program. Only the outermost
# level counts. A program that dies or reports less than it planned counts as one more
# failure.
count_ktap() {
	awk -v status="$2" '
		/^1\.\.[0-9]+/ { split($0, plan, /\.\.|[^0-9.]/); planned = plan[2] }
		/^ok .*# *SKIP/ { skipped++; next }
		/^ok / { passed++ }
		/^not ok / { failed++ }
		END {
			seen = passed + failed + skipped
			if (status == 4 && !failed)
				skipped += (seen == 0)
			else if (status != 0 && !failed)
				failed++
			else if (planned && seen < planned)
				failed++
			else if (!seen)
				passed++
			print passed + 0, failed + 0, skipped + 0
		}' "$1"
}

# what_failed KTAP-FILE STATUS: the lines that describe the failure.
what_failed() {
	case $2 in
	0) ;;
	124 | 137) echo "exit status $2 (timeout)" ;;
	*) echo "exit status $2" ;;
	esac
	awk '
		# The name of a test may contain these words.
		/^(# +)+(RUN|OK|FAIL) / || /^(# )+Totals/ { next }
		/^(# )*not ok/ || /^# .*(Expected|Assert|fail|error)/ { if (++said <= 20) print }
		END { exit !said }' "$1" || tail -n 10 "$1"
}

# log_name CELL: the name of its log folder, which differs for another machine (--machine).
log_name() {
	echo "${guest_machine:+${guest_machine##*/}-}${1//\//-}"
}

# report_test CELL NAME KTAP-FILE STATUS MILLISECONDS RESULTS-FILE
report_test() {
	local passed failed skipped verdict=ok what=''
	[[ -f $3 ]] || : >"$3"
	read -r passed failed skipped < <(count_ktap "$3" "$4")
	((failed == 0)) || verdict='NOT OK'
	((passed + failed > 0)) || verdict=skip
	np_say "$(printf '%-16s %-6s %-24s %3d passed %d failed %d skipped %6.1f s' "$1" "$verdict" "$2" \
		"$passed" "$failed" "$skipped" "$(awk "BEGIN {print $5 / 1000}")")"
	if ((failed)); then
		what=$(what_failed "$3" "$4")
		sed 's/^/          /' <<<"$what"
		echo "          full output: build/log/$(log_name "$1")/$2.ktap"
		what=": $(head -n 4 <<<"$what" | paste -sd '|' | sed 's/|/ | /g')"
	fi
	echo "$passed $failed $skipped $1 $2$what" >>"$6"
}

# report_missing_tests CELL PLAN RESULTS-FILE: fail if the guest ended before it had run all tests.
report_missing_tests() {
	local missing
	# A guest that ran nothing has none.
	: >>"$3"
	missing=$(awk 'plan { if (!($1 in seen)) print $1; next } { sub(/:$/, "", $5); seen[$5] }' "$3" plan=1 "$2" | paste -sd ' ')
	[[ $missing ]] || return 0
	echo "0 1 0 $1 guest: ended without running $missing" >>"$3"
	np_say "$1 NOT OK: the guest ended without running $missing"
	return 1
}

# complaints_in LOG: complaints of the kernel, with the test that was running.
complaints_in() {
	awk -v bad="$kernel_complaints" -v harmless="$harmless" '
		# Data races of other kernel code: a report names both functions.
		/BUG: KCSAN: / && !/nvmep_/ { next }
		{ sub(/\r$/, "") }
		# A test announces the defects that it plants, and checks the reports itself.
		/np-test: planted begin/ { planted = $NF }
		/np-test: planted end/ { planted = "" }
		# The crash kernel, after a planted panic.
		/Linux version [0-9]/ { planted = "" }
		# A planted DMA fault must not hide other reports, as other tests may run: its
		# address is BADCTRL_NOWHERE, and each fault is reported in two lines.
		planted == "dma-fault" && /DMAR: DRHD: handling fault|DMAR: .* fault addr 0x40dead/ { next }
		planted && planted != "dma-fault" { next }
		/np-test: begin/ { test = $NF }
		/np-test: end/ { test = "after " $NF }
		$0 ~ bad && $0 !~ harmless { print "          [" test "] " $0 }' "$1"
}

# report_kernel_log CELL LOG RESULTS-FILE: print complaints; fail if there are any.
report_kernel_log() {
	local complaints first context
	complaints=$(complaints_in "$2")
	if [[ $complaints ]]; then
		first=$(head -n 1 <<<"$complaints" | sed 's/^ *//')
		context=$(grep -F -A 60 -m 1 -- "${first#*] }" "$2" | tr -d '\r') || true
		# The message, where, and the first function of the module.
		echo "0 1 0 $1 kernel-log: $first$(grep -E -m 2 -o 'RIP: .*|nvmep_[a-z_]+\+.*' <<<"$context" | sed 's/^/ | /' | paste -sd '')" >>"$3"
		np_say "$1 NOT OK: the kernel complained, $(wc -l <<<"$complaints") lines in build/log/$(log_name "$1")/console.log:"
		head -n 20 <<<"$complaints"
		echo "          after the first:"
		sed 's/^/          /' <<<"$context"
		return 1
	fi
}

# summarize RESULTS-FILE: list the failures, print the totals, and fail if there are failures.
summarize() {
	awk '
		$2 { line = $0; sub(/^[0-9]+ [0-9]+ [0-9]+ /, "failed: ", line); print line }
		{ p += $1; f += $2; s += $3 }
		END {
			printf "%d passed, %d failed, %d skipped\n", p, f, s
			# A run without any test fails.
			exit f || !p
		}' "$1"
}
