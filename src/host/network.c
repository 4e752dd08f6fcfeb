/* SPDX-License-Identifier: Apache-2.0
 *
 * network.c: bytes and dropped packets per interface from /proc/net/dev, as our network namespace sees them.
 */
#include "host/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct interface {
	char name[HOST_NAME_BYTES];
	uint32_t received, sent, dropped;
	struct host_rate received_rate, sent_rate, dropped_rate;
};

struct network {
	struct host_file file;
	struct interface items[HOST_MAX_DEVICES];
	int count;
	int hint;
};

static struct interface *network_find(struct host *host, struct network *network, const char *name)
{
	struct interface *item;

	for (int i = 0; i < network->count; i++) {
		int at = (network->hint + i) % network->count;

		if (!strcmp(network->items[at].name, name)) {
			network->hint = at + 1;
			return &network->items[at];
		}
	}
	if (network->count == HOST_MAX_DEVICES) {
		host_omit(host, "network: the first %d interfaces are recorded", HOST_MAX_DEVICES);
		return NULL;
	}
	item = &network->items[network->count++];
	snprintf(item->name, sizeof(item->name), "%s", name);
	item->received = host_counter(host, "network.%s.received_bytes_per_s", name);
	item->sent = host_counter(host, "network.%s.sent_bytes_per_s", name);
	item->dropped = host_counter(host, "network.%s.dropped_packets_per_s", name);
	return item;
}

/* Parses " eth0: 10 1 0 0 0 0 0 0 20 2 0 0 0 0 0 0". The name ends at the last colon before the numbers, since a name
 * may contain one (eth0:1). */
static void network_sample_line(struct host *host, struct network *network, const char *line, const char *end)
{
	uint64_t received, sent, received_dropped, sent_dropped;
	const char *colon = memrchr(line, ':', (size_t)(end - line));
	char name[HOST_NAME_BYTES];
	struct interface *item;

	while (*line == ' ')
		line++;
	if (!colon || colon <= line || colon - line >= HOST_NAME_BYTES)
		return;
	if (sscanf(colon + 1, "%" SCNu64 " %*u %*u %" SCNu64 " %*u %*u %*u %*u %" SCNu64 " %*u %*u %" SCNu64, &received,
	           &received_dropped, &sent, &sent_dropped) != 4)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(colon - line), line);
	item = network_find(host, network, name);
	if (!item)
		return;
	host_rate_value(host, &item->received_rate, item->received, received, 1);
	host_rate_value(host, &item->sent_rate, item->sent, sent, 1);
	host_rate_value(host, &item->dropped_rate, item->dropped, received_dropped + sent_dropped, 1);
}

static void network_sample(struct host *host, void *state)
{
	struct network *network = state;
	const char *text = host_file_read(host, &network->file, "/proc/net/dev");

	network->hint = 0;
	while (text && *text) {
		const char *end = strchrnul(text, '\n');

		/* the two heading lines contain bars */
		if (!memchr(text, '|', (size_t)(end - text)))
			network_sample_line(host, network, text, end);
		text = *end ? end + 1 : NULL;
	}
}

static void network_close_files(void *state)
{
	host_file_close(&((struct network *)state)->file);
}

const struct host_source host_network = {"network", sizeof(struct network), NULL, network_sample, network_close_files};
