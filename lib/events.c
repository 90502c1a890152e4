// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What happened to a queue pair: records from its file.
 */
#include <string.h>
#include <unistd.h>

#include "internal.h"

/* Of a record, in the first version of the ABI; longer ones follow, shorter ones never. */
enum { RECORD_LEAST = BYTES_TO(struct nvme_peer_event, lost), RECORDS_MOST = 4096 };

/*
 * At most @count records.  A kernel that knows more of each has longer ones, of which fewer
 * fit; if not even one does, it says EINVAL, and the room for one is looked for.
 */
static ssize_t read_records(int fd, void *records, uint32_t count)
{
	size_t room = (size_t)count * RECORD_LEAST;
	ssize_t bytes;

	if (room > RECORDS_MOST)
		room = RECORDS_MOST;
	do {
		bytes = read(fd, records, room);
		room *= 2;
	} while (bytes < 0 && errno == EINVAL && room <= RECORDS_MOST);
	return bytes < 0 ? -errno : bytes;
}

static int take_records(const char *records, size_t bytes, void *events, size_t size)
{
	uint32_t length;
	int count = 0;

	while (bytes >= RECORD_LEAST) {
		memcpy(&length, records, sizeof(length));
		if (length < RECORD_LEAST || length > bytes)
			return -EPROTO;
		sized_copy((char *)events + count * size, size, records, length);
		records += length;
		bytes -= length;
		count++;
	}
	return count;
}

int nvmepeer_qp_events(struct nvmepeer_qp *qp, struct nvme_peer_event *events, size_t size,
		       uint32_t count)
{
	char records[RECORDS_MOST];
	ssize_t bytes;
	int result = sized_check(CALL_QP_EVENTS, qp->name, size, RECORD_LEAST);

	if (result)
		return result;
	bytes = count ? read_records(qp->fd, records, count) : -EINVAL;
	result = bytes < 0 ? (int)bytes : take_records(records, (size_t)bytes, events, size);
	return result < 0 ? failure_tell(CALL_QP_EVENTS, result, qp->name) : result;
}
