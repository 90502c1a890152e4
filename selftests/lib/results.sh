# SPDX-License-Identifier: GPL-2.0-only
# Read what tests printed (KTAP) and what the kernel logged; say it in one line each.
# Sourced by selftests/run.
#
# A results file holds one line for each test: "PASSED FAILED SKIPPED NAME".
# $np_results is the one of the whole run.

# What no test may make the kernel say.
kernel_complaints='BUG:|WARNING:|Oops|KASAN|KFENCE|UBSAN|possible circular locking|inconsistent lock state|INFO: task .* blocked for more|rcu.*stall|DMAR: \[DMA|DMAR: DRHD: handling fault|DMA-API:|unreferenced object|general protection fault|Call Trace'
# Said by every emulated machine, whatever runs on it.
harmless='DMAR: \[Firmware Bug\]|Firmware Bug|WARNING: .*mitigation'

# count_ktap FILE STATUS: "passed failed skipped" of one test program. Only the
# outermost level counts. A program that dies, or says less than it planned,
# has failed once more, whatever it printed.
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

# report_test CELL NAME KTAP-FILE STATUS MILLISECONDS RESULTS-FILE
report_test() {
	local passed failed skipped verdict=ok
	[[ -f $3 ]] || : >"$3"
	read -r passed failed skipped < <(count_ktap "$3" "$4")
	echo "$passed $failed $skipped $2" >>"$6"
	((failed == 0)) || verdict='NOT OK'
	((passed + failed > 0)) || verdict=skip
	np_say "$(printf '%-16s %-6s %-24s %3d passed %d failed %d skipped %6.1f s' "$1" "$verdict" "$2" \
		"$passed" "$failed" "$skipped" "$(awk "BEGIN {print $5 / 1000}")")"
	if ((failed)); then
		(($4 == 0)) || echo "          exit status $4$( (($4 != 124 && $4 != 137)) || echo ' (timeout)')"
		grep -E '^not ok|^# .*(Expected|Assert|fail|error)' "$3" | head -n 20 | sed 's/^/          /' || tail -n 10 "$3"
		echo "          full output: build/log/${1//\//-}/$2.ktap"
	fi
}

# report_kernel_log CELL LOG RESULTS-FILE: a complaint fails the cell, and is
# shown with the test that was running.
report_kernel_log() {
	local complaints
	complaints=$(awk -v bad="$kernel_complaints" -v harmless="$harmless" '
		# The kernel has races of its own; its reports name both functions.
		/BUG: KCSAN: / && !/nvmep_/ { next }
		# A test says which mistakes it makes on purpose, and looks at the reports itself.
		/np-test: planted begin/ { planted = 1 }
		/np-test: planted end/ { planted = 0 }
		planted { next }
		/np-test: begin/ { test = $NF }
		/np-test: end/ { test = "after " $NF }
		$0 ~ bad && $0 !~ harmless { print "          [" test "] " $0 }' "$2")
	if [[ $complaints ]]; then
		echo "0 1 0 kernel-log" >>"$3"
		np_say "$1 NOT OK: the kernel complained, $(wc -l <<<"$complaints") lines in build/log/${1//\//-}/console.log:"
		head -n 20 <<<"$complaints"
		return 1
	fi
}

# summarize TOTALS-FILE: the closing line, and the exit status.
summarize() {
	local passed failed skipped
	read -r passed failed skipped < <(
		awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$np_results")
	[[ -z $1 ]] || echo "$passed $failed $skipped" >>"$1"
	echo "$passed passed, $failed failed, $skipped skipped"
	# A run in which nothing ran has proved nothing.
	((failed == 0 && passed > 0))
}
