// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * broker.c: gives programs that may open neither the controller nor the file, such as worker.cu
 * in a container, a queue pair that reads and writes one file and nothing else.  The kernel checks
 * each of their commands (mediated mode), and no descriptor that they get can be used to add to
 * these rights.  The broker needs no capability: it opens the controller's node and owns the file,
 * which nvme-peer file prepare has prepared.  The permissions of the socket decide which users
 * get a queue pair.
 *
 *	cc broker.c $(pkg-config --cflags --libs libnvmepeer)
 *	./a.out nvmep0 FILE /run/nvmepeer-broker
 */
#include <errno.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include <nvmepeer_peer.h>

#include "broker.h"

static void explain(void)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	fprintf(stderr, "%s: %s. %s. %s.\n", why.call, why.what, why.limit, why.help);
}

/* What the worker gets. */
struct lease {
	struct nvmepeer_qp *qp;
	struct nvme_peer_window_add window;
	struct broker_offer offer;
	int fds[BROKER_PARTS];
};

/* After the seal, neither the worker nor the broker can add files or memory. */
static int create(struct nvmepeer *ctrl, const char *path, const struct broker_request *request,
		  int memory, struct lease *lease)
{
	struct nvme_peer_qp_create wanted = {
		.mode = NVME_PEER_MODE_MEDIATED,
		.sq_entries = request->entries,
	};
	struct nvme_peer_buf_add buffer = { .dmabuf_fd = memory };
	int error = nvmepeer_qp_create(ctrl, &wanted, sizeof(wanted), &lease->qp);

	if (!error)
		error = nvmepeer_file_open(lease->qp, path, &lease->window, sizeof(lease->window));
	if (!error)
		error = nvmepeer_buf_add(lease->qp, &buffer, sizeof(buffer));
	if (error)
		return error;
	lease->offer.blocks = lease->window.blocks;
	lease->offer.memory = NVME_PEER_HANDLE_ADDRESS(buffer.slot, 0);
	return nvmepeer_qp_seal(lease->qp);
}

/* The window is the namespace.  The kernel takes one range of a buffer, as an SGL would be. */
static int describe(struct nvmepeer *ctrl, struct lease *lease)
{
	struct nvmepeer_ns_info ns = {
		.size = sizeof(ns), .nsid = lease->window.id, .block_size = lease->window.block_size,
	};
	struct nvmepeer_geometry *geometry = &lease->offer.geometry;
	struct nvme_peer_qp_limits limits;
	struct nvme_peer_qp_info qp;
	struct nvme_peer_info info;
	int error = nvmepeer_info(ctrl, &info, sizeof(info));

	if (!error)
		error = nvmepeer_qp_info(lease->qp, &qp, sizeof(qp));
	if (!error)
		error = nvmepeer_qp_limits(lease->qp, &limits, sizeof(limits));
	if (error)
		return error;
	info.max_transfer = limits.max_transfer;
	info.sgls = 1;
	geometry->flags = NVMEPEER_ONE_RANGE;
	/* The kernel reports a Read once its data has arrived, as if the data was beside the rings. */
	return nvmepeer_geometry_build(&info, &qp, &ns, NVMEPEER_VIEW_DATA_IN_HOST | NVMEPEER_VIEW_DESCRIPTORS,
				       0, geometry, sizeof(*geometry));
}

static int export_parts(struct lease *lease)
{
	static const struct {
		enum nvme_peer_export what;
		enum nvmepeer_cuda_role role;
	} parts[] = {
		{ NVME_PEER_EXPORT_SQ, NVMEPEER_CUDA_SQ },
		{ NVME_PEER_EXPORT_CQ, NVMEPEER_CUDA_CQ },
		{ NVME_PEER_EXPORT_DOORBELL, NVMEPEER_CUDA_DOORBELL_MEMORY },
		{ NVME_PEER_EXPORT_STATUS, NVMEPEER_CUDA_STATUS },
		{ NVME_PEER_EXPORT_CONTROL, NVMEPEER_CUDA_CONTROL },
	};
	struct broker_offer *offer = &lease->offer;
	struct nvmepeer_cuda_file *file;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct nvmepeer_export exported;
		int error = nvmepeer_qp_export(lease->qp, parts[i].what, 0, &exported, sizeof(exported));

		if (error)
			return error;
		lease->fds[offer->count] = exported.fd;
		file = &offer->files[offer->count++];
		file->role = parts[i].role;
		/* The geometry has the offset of the doorbells in their file. */
		file->offset = parts[i].what == NVME_PEER_EXPORT_DOORBELL ? 0 : exported.offset;
		file->bytes = exported.offset + exported.length - file->offset;
	}
	lease->fds[offer->count] = dup(nvmepeer_qp_fd(lease->qp));
	offer->files[offer->count++].role = NVMEPEER_CUDA_QUEUE_PAIR;
	return lease->fds[offer->count - 1] < 0 ? -errno : 0;
}

/* The queue pair ends with the worker, as it has the only file then. */
static void offer_queue_pair(struct nvmepeer *ctrl, const char *path, int worker,
			     const struct broker_request *request, int memory)
{
	const struct broker_offer refusal = { .error = -EINVAL };
	struct lease lease = { 0 };
	int error = create(ctrl, path, request, memory, &lease);

	if (!error)
		error = describe(ctrl, &lease);
	if (!error)
		error = export_parts(&lease);
	if (error)
		explain();
	if (!broker_send(worker, error ? &refusal : &lease.offer, sizeof(refusal), lease.fds,
			 error ? 0 : lease.offer.count))
		perror("the worker's socket");
	for (uint32_t i = 0; i < lease.offer.count; i++)
		close(lease.fds[i]);
	nvmepeer_qp_destroy(lease.qp);
}

static void serve(struct nvmepeer *ctrl, const char *path, int worker)
{
	struct broker_request request = { 0 };
	int fds[BROKER_PARTS];
	uint32_t count;

	if (broker_receive(worker, &request, sizeof(request), fds, &count) && count == 1)
		offer_queue_pair(ctrl, path, worker, &request, fds[0]);
	for (uint32_t i = 0; i < count; i++)
		close(fds[i]);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(path);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, 8))
		return -1;
	return listener;
}

int main(int argc, char **argv)
{
	struct nvmepeer *ctrl;
	int listener, worker;

	if (argc != 4) {
		fputs("usage: broker CONTROLLER FILE SOCKET\n"
		      "FILE must be on ext4 or XFS on a disk of nvme-peer: bind a controller\n",
		      stderr);
		return 2;
	}
	if (nvmepeer_open(argv[1], &ctrl))
		return explain(), 1;
	listener = listen_at(argv[3]);
	while (listener >= 0 && (worker = accept(listener, NULL, NULL)) >= 0) {
		serve(ctrl, argv[2], worker);
		close(worker);
	}
	perror(argv[3]);
	return 1;
}
