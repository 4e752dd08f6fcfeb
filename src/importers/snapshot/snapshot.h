/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot.h: shared by the files that turn a memory snapshot of PyTorch's CUDA allocator, the pickle of
 * torch.cuda.memory._dump_snapshot(), into the model. snapshot_take.c makes small rows of its dictionaries as they are
 * read. snapshot_segments.c and snapshot_events.c deliver those to the model. snapshot.c does the rest.
 */
#ifndef IMPORTERS_SNAPSHOT_SNAPSHOT_H
#define IMPORTERS_SNAPSHOT_SNAPSHOT_H

#include "base/pickle_read.h"
#include "model/model.h"
#include "model/number_map.h"

enum snapshot_tag { /* the kind of rows that a dictionary, or a list of them, was turned into */
	SNAPSHOT_FRAME = 1,
	SNAPSHOT_STACK,
	SNAPSHOT_EVENT,
	SNAPSHOT_BLOCK,
	SNAPSHOT_SEGMENT,
	SNAPSHOT_RUN = 16, /* added to one of these: a list, stored as its first row and count */
};

enum snapshot_action {
	ACTION_ALLOC,
	ACTION_FREE_REQUESTED,
	ACTION_FREE_COMPLETED,
	ACTION_SEGMENT_ALLOC,
	ACTION_SEGMENT_FREE,
	ACTION_SEGMENT_MAP,
	ACTION_SEGMENT_UNMAP,
	ACTION_SNAPSHOT,
	ACTION_OOM,
	ACTION_USER_DEFINED,
	ACTION_COUNT,
	ACTION_LEFT_OUT = ACTION_COUNT, /* unreadable or unknown */
};

struct snapshot_event {
	int64_t time_us;
	uint64_t address; /* for an OOM: free bytes of the device */
	uint64_t bytes;
	uint32_t stack; /* stack of the model */
	uint8_t action;
	uint8_t category; /* enum stepscope_memory, or STEPSCOPE_MEMORY_UNKNOWN */
	bool has_time;
};

enum snapshot_state {
	BLOCK_INACTIVE,
	BLOCK_ACTIVE,
	BLOCK_PENDING,
};

struct snapshot_block {
	uint64_t address, bytes, requested_bytes;
	uint32_t stack;
	uint8_t state; /* enum snapshot_state */
	uint8_t category;
	bool has_address, has_frames;
};

struct snapshot_segment {
	struct memory_segment row; /* without the sums over its blocks */
	uint32_t first_block, block_count;
};

struct snapshot_frame { /* name and file are strings of the model */
	uint32_t name, file, line;
	uint32_t number; /* equal for equal frames */
	bool is_kept;
};

enum snapshot_repair {
	SNAPSHOT_CUT,
	SNAPSHOT_MALFORMED,
	SNAPSHOT_DAMAGED,
	SNAPSHOT_EVENTS,
	SNAPSHOT_ACTIONS,
	SNAPSHOT_BLOCKS,
	SNAPSHOT_SEGMENTS,
	SNAPSHOT_TILES,
	SNAPSHOT_ITEMS,
	SNAPSHOT_TEXTS,
	SNAPSHOT_ODD_TEXTS,
	SNAPSHOT_ORDER,
	SNAPSHOT_NOTES,
	SNAPSHOT_REPAIRS,
};

#define SNAPSHOT_KEYS 32
#define SNAPSHOT_DEVICES 1024

#define SNAPSHOT_ARRAY(type, name)                                                                                     \
	type *name;                                                                                                    \
	uint32_t name##_count, name##_capacity

struct snapshot {
	struct model *model;
	const char *path;
	uint64_t file_bytes;
	struct pickle pickle;
	SNAPSHOT_ARRAY(struct snapshot_frame, frames);
	SNAPSHOT_ARRAY(struct snapshot_event, events);
	SNAPSHOT_ARRAY(struct snapshot_block, blocks);
	/* the first blocks, up to this number, belong to a segment or are between blocks that do */
	uint32_t owned_blocks;
	SNAPSHOT_ARRAY(struct snapshot_segment, segments);
	struct number_map strings;     /* strings of the model, by number in pickle.texts */
	struct number_map frame_texts; /* first frame with a name and a file, by their numbers in pickle.texts */
	struct number_map frame_numbers, stack_nodes;
	uint32_t process;
	uint32_t tracks[SNAPSHOT_DEVICES]; /* track of the model, + 1; 0: none */
	bool has_times;
	int64_t first_ns, last_ns;
	uint64_t repairs[SNAPSHOT_REPAIRS], first_offset[SNAPSHOT_REPAIRS];
};

void snapshot_repair(struct snapshot *snapshot, enum snapshot_repair repair, uint64_t count);
/* Returns a text of the pickle as a string of the model; 0: it is not a text. A long text may be used in very many
 * places, so it is added only once. */
uint32_t snapshot_string(struct snapshot *snapshot, const struct pickle_value *value);
/* Returns the track of the device's allocator, creating it if needed; device must be below SNAPSHOT_DEVICES. */
uint32_t snapshot_track(struct snapshot *snapshot, uint32_t device);

/* snapshot_take.c: called by pickle_read(). The keys are added first, so that they are the first texts, below
 * SNAPSHOT_KEYS. */
void snapshot_add_keys(struct pickle *pickle);
bool snapshot_take(void *snapshot, struct pickle *pickle, uint32_t object, const struct pickle_value *items,
                   uint32_t count);

/* snapshot_segments.c */
void snapshot_deliver_segments(struct snapshot *snapshot);

/* snapshot_notes.c: annotations (a list of begins and ends) as spans on the track of their device, ProfilerStep#N as
 * steps. */
struct snapshot_note {
	int64_t time_ns, dur_ns; /* dur_ns -1: no end */
	uint32_t name;
	uint32_t device;
	uint32_t track, row; /* in the model */
};
struct snapshot_notes {
	struct snapshot_note *list; /* by device, then time */
	uint32_t count;
};
/* Also extends the snapshot's time range by the notes. */
void snapshot_read_notes(struct snapshot *snapshot, const struct pickle_object *list, struct snapshot_notes *notes);
void snapshot_deliver_notes(struct snapshot *snapshot, struct snapshot_notes *notes);

/* snapshot_events.c */
void snapshot_find_times(struct snapshot *snapshot);
/* traces: the list of lists of events, by device. */
void snapshot_deliver_events(struct snapshot *snapshot, const struct pickle_object *traces,
                             const struct snapshot_notes *notes);

#endif
