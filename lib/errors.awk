# SPDX-License-Identifier: MIT OR GPL-2.0
# What the errors of a call mean stands once, beside its structure in
# <linux/nvme_peer.h> ("Errors:" in the kernel-doc) and beside enum nvmepeer_error of the
# device library.  This makes from it
#
#   awk -f errors.awk HEADER...                     the tables of meaning.c
#   awk -v page=PAGE.3 -v version=VERSION -f errors.awk HEADER... PAGE.3
#                                                   PAGE.3 with @VERSION@ and the lines
#                                                   ".errors STRUCTURE [FUNCTION]" replaced
#
# Fails if a result of the device library has no text.

function quoted(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	return "\"" text "\""
}

# For an explanation: members in quotes, no other mark of kernel-doc, in lower case, no full
# stop.
function plain(text) {
	while (match(text, /@[a-z_0-9]+/))
		text = substr(text, 1, RSTART - 1) "'" substr(text, RSTART + 1, RLENGTH - 1) "'" \
			substr(text, RSTART + RLENGTH)
	gsub(/%/, "", text)
	gsub(/  /, " ", text)
	sub(/[.;,]$/, "", text)
	if (text ~ /^[A-Z][a-z ]/)
		text = tolower(substr(text, 1, 1)) substr(text, 2)
	return text
}

# For a manual page: members in italics.
function sentence(text) {
	gsub(/-/, "\\-", text)
	gsub(/\.  /, ".\n", text)
	while (match(text, /@[a-z_0-9]+/))
		text = substr(text, 1, RSTART - 1) "\\fI" substr(text, RSTART + 1, RLENGTH - 1) "\\fP" \
			substr(text, RSTART + RLENGTH)
	return text
}

# Keeps the entry that was being read.
function keep(    names, count, i) {
	if (error == "")
		return
	count = text ~ /^As NVME_PEER_[A-Z_]+\.$/ ? 0 : split(error, names, /, */)
	for (i = 1; i <= count; i++) {
		entries++
		owner[entries] = structure
		name[entries] = names[i]
		meaning[entries] = text
	}
	error = ""
}

page != "" && FILENAME == page { in_page = 1 }

!in_page && /^\/\*/ { errors = 0; structure = "nvme_peer_none" }
!in_page && /^ \* struct [a-z_]+ - / { structure = $3 }
!in_page && /^ \* Errors:/ { errors = 1; next }
!in_page && errors && /^ \* E[A-Z0-9]+(, E[A-Z0-9]+)*: / {
	keep()
	error = $0
	sub(/^ \* /, "", error)
	text = error
	sub(/: .*/, "", error)
	sub(/^[^:]*: /, "", text)
	next
}
!in_page && errors && error != "" && /^ \*  +[^ ]/ {
	line = $0
	sub(/^ \* +/, "", line)
	text = text " " line
	next
}
!in_page && errors && /^ \*\/?$/ { keep(); if ($0 ~ /\//) errors = 0; next }

# NVMEPEER_E_FULL = -4,		/* text */, or the comment on the line before
!in_page && /^\t\/\*.*\*\/$/ { before = $0; next }
!in_page && /^\tNVMEPEER_[A-Z_]+ = -[0-9]+,/ {
	line = /\/\*/ ? $0 : before
	before = ""
	sub(/^.*\/\* */, "", line)
	sub(/ *\*\/.*/, "", line)
	statuses++
	status[statuses] = $1
	status_meaning[statuses] = plain(line)
	if (line == "") {
		print FILENAME ": " $1 " has no text" >"/dev/stderr"
		failed = 1
	}
	next
}
!in_page { before = "" }

in_page && /^\.errors / {
	for (i = 1; i <= entries; i++)
		if (owner[i] == $2) {
			found = 1
			print ".TP"
			if ($3 == "")
				print ".B " name[i]
			else
				print ".BR " name[i] " \" (" $3 "())\""
			print sentence(meaning[i])
		}
	if (!found) {
		print page ": " $2 " has no errors" >"/dev/stderr"
		print
	}
	found = 0
	next
}
in_page { gsub(/@VERSION@/, version); print }

END {
	if (page != "")
		exit
	for (i = 1; i <= entries; i++) {
		call = toupper(owner[i])
		sub(/^NVME_PEER_/, "CALL_", call)
		print "MEANING(" call ", " name[i] ", " quoted(plain(meaning[i])) ")"
	}
	for (i = 1; i <= statuses; i++)
		print "STATUS(" status[i] ", " quoted(status_meaning[i]) ")"
	exit failed
}
