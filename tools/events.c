// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer events: events of the queue pairs of all controllers, from uevents of the
 * kernel.  Reading them does not consume the events of a queue pair file.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <nvmepeer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "arguments.h"
#include "nvme-peer.h"

enum { KERNEL_GROUP = 1, LONGEST_EVENT = 8192 };

/* The value of @key in an event of @length bytes that ends with a NUL, or NULL. */
static const char *value_of(const char *event, size_t length, const char *key)
{
	size_t key_length = strlen(key), at;

	for (at = 0; at < length; at += strlen(event + at) + 1)
		if (!strncmp(event + at, key, key_length) && event[at + key_length] == '=')
			return event + at + key_length + 1;
	return NULL;
}

static void report_value(struct report *report, const char *name, const char *text)
{
	report_number(report, name, text ? strtoull(text, NULL, 10) : 0, NULL);
}

/* Returns false for an event of another driver. */
static bool report_event(struct report *report, const char *event, size_t length)
{
	const char *what = value_of(event, length, "NVME_PEER_EVENT");
	const char *node = value_of(event, length, "DEVNAME");

	if (!what || !node)
		return false;
	report_object(report, NULL);
	report_text(report, "node", node);
	report_text(report, "event", what);
	report_value(report, "generation", value_of(event, length, "NVME_PEER_GENERATION"));
	report_value(report, "queue_pairs", value_of(event, length, "NVME_PEER_QUEUE_PAIRS"));
	report_object_end(report);
	fflush(report->out);
	return true;
}

static int listen_to_kernel(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };
	int listener = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	int error;

	if (listener < 0)
		return -errno;
	if (!bind(listener, (struct sockaddr *)&address, sizeof(address)))
		return listener;
	error = errno;
	close(listener);
	return -error;
}

/* Report @count events. */
static int follow(struct report *report, int listener, uint64_t count)
{
	char event[LONGEST_EVENT + 1];
	ssize_t length;

	while (count) {
		length = recv(listener, event, LONGEST_EVENT, 0);
		if (length < 0 && errno == ENOBUFS) {
			fputs("nvme-peer: the kernel dropped events (ENOBUFS)\n", stderr);
			continue;
		}
		if (length < 0)
			return -errno;
		event[length] = 0;
		count -= report_event(report, event, (size_t)length);
	}
	return 0;
}

int command_events(struct report *report, const struct options *options, int argc, char **argv)
{
	int listener, result;

	if (argc)
		return usage_error("events takes only --count N", argv[0]);
	listener = listen_to_kernel();
	result = listener;
	if (listener >= 0) {
		report_list(report, "events");
		result = follow(report, listener, options->count);
		report_list_end(report);
		close(listener);
	}
	if (!result)
		return 0;
	fprintf(stderr, "nvme-peer: uevents: %s\n", strerror(-result));
	return EXIT_REFUSED;
}
