// SPDX-License-Identifier: GPL-2.0-only
/*
 * Marker words in comments and strings.
 * planted: lib: 6 marker words in 15 lines
 * planted: lib: worst: lib/planted.c has 6
 */
/* This waits for nobody. planted: lib/planted.c:7: "nobody" */
/* Somebody waits in vain. planted: lib/planted.c:8: "in vain" */
int planted(void)
{
	return puts("nvmepeer: whoever asks"); /* planted: lib/planted.c:11: "whoever" */
}

/* Identifiers and longer words do not count: permitted: lib/planted.c:15 */
int notify_lock, who_is, unknown, tellers;
