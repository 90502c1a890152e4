// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Events of a queue pair, read from its file.
 */
#include <string.h>
#include <unistd.h>

#include "internal.h"

/* Size of the shortest event; those of newer kernels are longer. */
enum { EVENT_LEAST = NVME_PEER_EVENT_LEAST, EVENTS_BYTES = 4096 };

/*
 * Reads at most @count events.  The events of a newer kernel are longer, so fewer of them
 * fit; if not even one fits, the kernel reports its beginning.
 */
static ssize_t read_events(int fd, void *raw, uint32_t count)
{
	size_t length = (size_t)count * sizeof(struct nvme_peer_event);
	ssize_t bytes;

	if (length > EVENTS_BYTES)
		length = EVENTS_BYTES;
	bytes = read(fd, raw, length);
	return bytes < 0 ? -errno : bytes;
}

static int copy_events(const char *raw, size_t bytes, void *events, size_t size)
{
	uint32_t length;
	int count = 0;

	while (bytes >= EVENT_LEAST) {
		memcpy(&length, raw, sizeof(length));
		if (length < EVENT_LEAST || length > bytes)
			return -EPROTO;
		struct_copy((char *)events + count * size, size, raw, length);
		raw += length;
		bytes -= length;
		count++;
	}
	return count;
}

int nvmepeer_qp_events(struct nvmepeer_qp *qp, struct nvme_peer_event *events, size_t size,
		       uint32_t count)
{
	char raw[EVENTS_BYTES];
	ssize_t bytes;
	int result = struct_size_check(CALL_EVENT, qp->name, size, EVENT_LEAST);

	if (result)
		return result;
	bytes = count ? read_events(qp->fd, raw, count) : -EINVAL;
	result = bytes < 0 ? (int)bytes : copy_events(raw, (size_t)bytes, events, size);
	return result < 0 ? failure_set(CALL_EVENT, result, qp->name) : result;
}
