// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * broker.c: creates queue pairs for programs that may not open the controller, such as
 * worker.cu, and passes them by descriptors.  It needs CAP_SYS_RAWIO, the programs do not.
 * The permissions of the socket decide which users get a queue pair: each can read and
 * write the whole controller.  Controller, namespace and socket are optional arguments.
 *
 *	cc broker.c $(pkg-config --cflags --libs libnvmepeer)
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include <nvmepeer_peer.h>

#include "broker.h"

static int explain(void)
{
	struct nvmepeer_explanation why;
	int error = nvmepeer_explain(&why, sizeof(why));

	fprintf(stderr, "%s: %s. %s. %s.\n", why.call, why.what, why.limit, why.help);
	return error;
}

/* What the worker gets, and what the broker keeps until the worker has ended. */
struct lease {
	struct nvme_peer_buf_import memory;
	struct nvmepeer_qp *qp;
	struct broker_offer offer;
	int fds[BROKER_PARTS];
};

static int create(struct nvmepeer *ctrl, const struct broker_request *request, int memory,
		  struct lease *lease)
{
	struct nvme_peer_qp_create wanted = {
		.mode = NVME_PEER_MODE_DIRECT,
		.sq_entries = request->entries,
		.cq_entries = request->entries,
		.sq_offset = request->sq,
		.cq_offset = request->cq,
	};
	int error = nvmepeer_buf_import(ctrl, memory, 0, &lease->memory, sizeof(lease->memory));

	if (error)
		return error;
	wanted.sq_handle = wanted.cq_handle = lease->memory.handle;
	return nvmepeer_qp_create(ctrl, &wanted, sizeof(wanted), &lease->qp);
}

/* Without PRP lists: a command of the worker transfers up to two controller pages. */
static int describe(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
		    const struct broker_request *request, struct lease *lease)
{
	struct broker_offer *offer = &lease->offer;
	struct nvme_peer_qp_info info;
	uint32_t view;
	int result = nvmepeer_qp_info(lease->qp, &info, sizeof(info));

	if (result)
		return result;
	/* Refuses memory of one device for the rings and of another for the data. */
	view = nvmepeer_data_view(&info, &lease->memory.pci_address) | NVMEPEER_VIEW_DESCRIPTORS;
	result = nvmepeer_qp_geometry(ctrl, lease->qp, ns, view, 0, &offer->geometry,
				      sizeof(offer->geometry));
	if (result)
		return result;
	result = nvmepeer_buf_table(ctrl, lease->memory.handle, request->data, offer->table,
				    request->pages);
	return result < 0 ? result : result == (int)request->pages ? 0 : -ERANGE;
}

static int export_parts(struct lease *lease)
{
	static const struct {
		enum nvme_peer_export what;
		enum nvmepeer_cuda_role role;
	} parts[] = {
		{ NVME_PEER_EXPORT_DOORBELL, NVMEPEER_CUDA_DOORBELL },
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
		file->offset = parts[i].role == NVMEPEER_CUDA_DOORBELL ? 0 : exported.offset;
		file->bytes = exported.offset + exported.length - file->offset;
	}
	lease->fds[offer->count] = dup(nvmepeer_qp_fd(lease->qp));
	offer->files[offer->count++].role = NVMEPEER_CUDA_QUEUE_PAIR;
	return lease->fds[offer->count - 1] < 0 ? -errno : 0;
}

/* The queue pair ends with the worker, as it has the only file then. */
static bool offer_queue_pair(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns, int worker,
			     const struct broker_request *request, int memory, struct lease *lease)
{
	const struct broker_offer refusal = { .error = -EINVAL };
	int error = request->pages > BROKER_PAGES ? -EINVAL : create(ctrl, request, memory, lease);
	bool sent;

	if (!error)
		error = describe(ctrl, ns, request, lease);
	if (!error)
		error = export_parts(lease);
	if (error)
		explain();
	sent = broker_send(worker, error ? &refusal : &lease->offer, sizeof(refusal), lease->fds,
			   error ? 0 : lease->offer.count);
	for (uint32_t i = 0; i < lease->offer.count; i++)
		close(lease->fds[i]);
	nvmepeer_qp_destroy(lease->qp);
	return sent && !error;
}

/* The kernel deletes the queues when it closes the last file, which takes a moment. */
static void release(struct nvmepeer *ctrl, uint32_t handle)
{
	for (int i = 0; handle && i < 500; i++) {
		if (nvmepeer_buf_release(ctrl, handle) != -EBUSY)
			return;
		poll(NULL, 0, 10);
	}
	if (handle)
		explain();
}

/* One worker, until it has ended. */
static void serve(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns, int worker)
{
	struct broker_request request = { 0 };
	struct lease lease = { 0 };
	int fds[BROKER_PARTS];
	uint32_t count;
	bool good = broker_receive(worker, &request, sizeof(request), fds, &count) && count == 1;
	char nothing;

	good = good && offer_queue_pair(ctrl, ns, worker, &request, fds[0], &lease);
	for (uint32_t i = 0; i < count; i++)
		close(fds[i]);
	if (good && read(worker, &nothing, 1) < 0)
		perror("the worker's socket");
	release(ctrl, lease.memory.handle);
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
	const char *path = argc > 3 ? argv[3] : "/run/nvmepeer-broker";
	struct nvmepeer *ctrl;
	struct nvmepeer_ns *ns;
	int listener, worker;

	if (nvmepeer_open(argc > 3 ? argv[1] : "nvmep0", &ctrl) ||
	    nvmepeer_ns_open(argc > 3 ? argv[2] : "ngp0n1", &ns))
		return explain(), 1;
	listener = listen_at(path);
	while (listener >= 0 && (worker = accept(listener, NULL, NULL)) >= 0) {
		serve(ctrl, nvmepeer_ns_info(ns), worker);
		close(worker);
	}
	perror(path);
	return 1;
}
