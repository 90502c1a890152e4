// SPDX-License-Identifier: GPL-2.0-only
/* Mistakes that checkpatch must find in user space too. */

/* planted: POINTER_LOCATION */
int planted_pointer(int* value)
{
	return *value;
}
