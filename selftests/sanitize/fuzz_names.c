// SPDX-License-Identifier: GPL-2.0-only
/* libFuzzer: parsing and formatting of addresses, routes and names. */
#include <nvmepeer.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A parsed address must be the same after formatting and parsing. */
static void addresses(const char *text)
{
	struct nvme_peer_pci_address address, again;
	char printed[NVMEPEER_PCI_TEXT];

	if (nvmepeer_pci_parse(text, &address))
		return;
	nvmepeer_pci_format(address, printed);
	if (nvmepeer_pci_parse(printed, &again) || memcmp(&again, &address, sizeof(again)))
		abort();
}

/* Formatting must not write past the end of a short buffer. */
static void routes(const uint8_t *data, size_t size)
{
	struct nvme_peer_route route = { 0 };
	size_t length = size ? data[0] : 0;
	char *text = malloc(length ? length : 1);

	memcpy(&route, data, size < sizeof(route) ? size : sizeof(route));
	if (text && length)
		nvmepeer_route_describe(&route, &route.data, text, length);
	free(text);
	(void)strlen(nvmepeer_verdict_name(route.data.verdict));
	(void)strlen(nvmepeer_reason_name(route.data.reason));
	(void)strlen(nvmepeer_state_name(route.data.blocker_count));
	(void)strlen(nvmepeer_status_text((int)route.size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	addresses(text);
	free(text);
	routes(data, size);
	return 0;
}
