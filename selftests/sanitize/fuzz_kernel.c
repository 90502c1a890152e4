// SPDX-License-Identifier: GPL-2.0-only
/*
 * libFuzzer: the library with arbitrary results of the kernel and the controller. The fake kernel
 * is that of the library's unit test, see lib/tests/fake.h.
 */
#include <nvmepeer.h>
#include <stdint.h>
#include <string.h>

#include "fake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next @length bytes of the input, or zeros. */
static void take(const uint8_t **data, size_t *size, void *into, size_t length)
{
	size_t there = length < *size ? length : *size;

	memcpy(into, *data, there);
	*data += there;
	*size -= there;
}

static void answer(const uint8_t *data, size_t size)
{
	uint8_t fail = 0;

	fake_reset();
	take(&data, &size, &fail, 1);
	take(&data, &size, &fake.info, sizeof(fake.info));
	take(&data, &size, &fake.qp_info, sizeof(fake.qp_info));
	take(&data, &size, &fake.route, sizeof(fake.route));
	take(&data, &size, fake.identify, sizeof(fake.identify));
	fake.fail_error = fail & 0x7f;
	fake.fail_command = fail & 0x80 ? NVME_PEER_QP_CREATE : NVME_PEER_BUF_IMPORT;
}

static void use_controller(void)
{
	struct nvme_peer_qp_create create = { .sq_entries = 16, .cq_entries = 16 };
	struct nvmepeer_explanation explanation;
	struct nvme_peer_buf_import buffer;
	struct nvme_peer_route route;
	struct nvmepeer_qp *qp;
	struct nvmepeer *ctrl;

	if (nvmepeer_open("nvmep0", &ctrl))
		return;
	nvmepeer_route_pci(ctrl, (struct nvme_peer_pci_address){ 0, 0x100, 1 }, &route,
			   sizeof(route));
	nvmepeer_buf_import(ctrl, 5, 0, &buffer, sizeof(buffer));
	nvmepeer_explain(&explanation, sizeof(explanation));
	if (!nvmepeer_qp_create(ctrl, &create, sizeof(create), &qp)) {
		struct nvme_peer_qp_info info;

		nvmepeer_qp_info(qp, &info, sizeof(info));
		nvmepeer_qp_destroy(qp);
	}
	nvmepeer_explain(&explanation, sizeof(explanation));
	nvmepeer_close(ctrl);
}

static void use_namespace(void)
{
	struct nvmepeer_ns *ns;
	char block[4096];

	if (nvmepeer_ns_open("ngp0n1", &ns))
		return;
	nvmepeer_ns_read(ns, 0, 1, block);
	nvmepeer_ns_close(ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	answer(data, size);
	use_controller();
	use_namespace();
	return 0;
}
