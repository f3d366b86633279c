/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>

#include "../../policy/netd_packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A request is answered by what is read as its answer. */
static void answer(const struct datagram *g)
{
	static uint8_t packet[NETD_PACKET_MAX];
	const size_t head = g->to.family == 4 ? 20 : 40;
	uint16_t sequence = 0;
	struct span payload;
	int n = datagram_answer(g, g->payload, packet);

	if (n < (int)head) {
		abort();
	}
	const struct span message = { .p = (const char *)packet + head, .n = (size_t)n - head };

	if (echo_reply(g->to.family, message, &sequence, &payload) < 0 || sequence != g->to_port ||
			!span_eq(payload, g->payload)) {
		abort();
	}
	for (int why = 0; why < REFUSAL_COUNT; why++) {
		(void)!datagram_refuse(g, (enum refusal)why, 1280, packet);
	}
	if (echo_request(g, packet) != (int)(8 + g->payload.n)) {
		abort();
	}
}

/* A packet of a program's, and what a socket outside has received. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct span packet = { .p = (const char *)data, .n = size };
	struct datagram g;
	struct span payload;
	uint16_t sequence = 0;

	(void)!echo_reply(4, packet, &sequence, &payload);
	(void)!echo_reply(6, packet, &sequence, &payload);
	if (echo_parse(packet, &g) == 0) {
		answer(&g);
	}
	return 0;
}
