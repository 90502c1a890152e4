# SPDX-License-Identifier: GPL-2.0-only
# Divide the tests of cells among guests. Sourced by selftests/run, after cell.sh, which records the times
# of tests in the file $np_times: "CELL NAME MILLISECONDS", the last line of a test counts.

# keep_last_times: one line for each test.
keep_last_times() {
	[[ $np_times && -s $np_times ]] || return 0
	awk '{ last[$1, $2] = $0 } END { for (test in last) print last[test] }' "$np_times" >"$np_times.$$"
	mv "$np_times.$$" "$np_times"
}

# schedule JOBS [LAST...]: read lines "CELL NAME SECONDS COMMAND" and print "GUEST NAME SECONDS COMMAND", the
# guest with the most to do first, so that JOBS guests at a time end early. Lines of expected times, which
# begin with "# ", come before.
#
# A cell whose tests take long is split into parts of equal times, if all guests end a minute earlier
# with the boot of one more. The tests of a part remain in their order. LAST, the tests that run after
# all others, are in one part, and so are NAME and its runs in other modes. A test without a recorded
# time counts with a tenth of its SECONDS.
schedule() {
	local times=/dev/null
	[[ ! -s $np_times ]] || times=$np_times
	awk -v jobs="$1" -v last=" ${*:2} " -v built=" ${np_built_kernels[*]} " '
		what == "times" { known[$1, $2] = $3 / 1000; next }
		!($1 in boot) {
			cells[++cell_count] = $1
			boot[$1] = index(built, " " substr($1, 1, index($1, "/") - 1) " ") ? 45 : 15
			parts[$1] = 1
		}
		{
			line[++lines] = $0
			group = $2
			sub(/-(relay|mediated)$/, "", group)
			if (index(last, " " group " "))
				group = "LAST"
			if (!(($1, group) in time))
				groups[$1, ++group_count[$1]] = group
			seconds = ($1, $2) in known ? known[$1, $2] : $3 / 10
			time[$1, group] += seconds
			sum[$1] += seconds
			group_of[lines] = group
		}

		# The group without a part that takes longest; -1 if there is none.
		function longest_group(cell,    i, group, best) {
			best = -1
			for (i = 1; i <= group_count[cell]; i++) {
				group = groups[cell, i]
				if (!((cell, group) in part) && (best == -1 || time[cell, group] > time[cell, best]))
					best = group
			}
			return best
		}
		function split_cell(cell, count,    i, group, least) {
			parts[cell] = count
			for (i = 1; i <= group_count[cell]; i++)
				delete part[cell, groups[cell, i]]
			for (i = 1; i <= count; i++)
				load[cell, i] = boot[cell]
			while ((group = longest_group(cell)) != -1) {
				least = 1
				for (i = 2; i <= count; i++)
					if (load[cell, i] < load[cell, least])
						least = i
				part[cell, group] = least
				load[cell, least] += time[cell, group]
			}
		}
		# List the guests in the order of their start, and return when the last one ends.
		function simulate(    i, j, k, cell, free, least, end) {
			guest_count = 0
			for (i = 1; i <= cell_count; i++) {
				cell = cells[i]
				for (j = 1; j <= parts[cell]; j++) {
					k = ++guest_count
					for (; jobs > 1 && k > 1 && load[guests[k - 1]] < load[cell, j]; k--)
						guests[k] = guests[k - 1]
					guests[k] = cell SUBSEP j
				}
			}
			for (i = 1; i <= jobs; i++)
				free[i] = 0
			for (i = 1; i <= guest_count; i++) {
				least = 1
				for (j = 2; j <= jobs; j++)
					if (free[j] < free[least])
						least = j
				free[least] += load[guests[i]]
				if (free[least] > end)
					end = free[least]
			}
			return end
		}
		function guest_name(guest,    at) {
			split(guest, at, SUBSEP)
			return parts[at[1]] > 1 ? at[1] "/" at[2] "of" parts[at[1]] : at[1]
		}
		# A part of less than two minutes is mostly its boot.
		function can_split(cell) {
			return parts[cell] < group_count[cell] && sum[cell] / (parts[cell] + 1) >= 120
		}
		function split_more(cell) {
			split_cell(cell, parts[cell] + 1)
		}

		END {
			for (i = 1; i <= cell_count; i++) {
				split_cell(cells[i], 1)
				all += load[cells[i], 1]
			}
			# No part takes longer than its share of all.
			for (i = 1; i <= cell_count; i++)
				while (sum[cells[i]] / parts[cells[i]] > all / jobs && can_split(cells[i]))
					split_more(cells[i])
			end = simulate()
			do {
				best = ""
				best_end = end - 60
				for (i = 1; i <= cell_count; i++) {
					cell = cells[i]
					if (!can_split(cell))
						continue
					split_more(cell)
					if ((trial = simulate()) <= best_end) {
						best = cell
						best_end = trial
					}
					split_cell(cell, parts[cell] - 1)
				}
				if (best != "") {
					split_more(best)
					end = best_end
				}
			} while (best != "")
			end = simulate()
			all = longest = 0
			for (i = 1; i <= guest_count; i++) {
				all += load[guests[i]]
				if (load[guests[i]] > longest)
					longest = load[guests[i]]
			}
			printf "# %d guests for %d cells, %d at a time: %d s of all, %d s of the longest, %d s in all\n",
				guest_count, cell_count, jobs, all, longest, end
			for (i = 1; i <= guest_count; i++) {
				name = guest_name(guests[i])
				printf "# %-26s %5d s\n", name, load[guests[i]]
			}
			for (i = 1; i <= guest_count; i++) {
				name = guest_name(guests[i])
				split(guests[i], at, SUBSEP)
				for (j = 1; j <= lines; j++) {
					split(line[j], word, " ")
					if (word[1] == at[1] && part[at[1], group_of[j]] == at[2])
						print name substr(line[j], length(at[1]) + 1)
				}
			}
		}' what=times "$times" what=plans -
}
