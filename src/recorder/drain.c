/* SPDX-License-Identifier: Apache-2.0
 *
 * drain.c: pool -> file. One pass: encode what is new into `body`, collect the symbols and streams it needs in `head`, write
 * both at once, then free the chunks that are done.
 */
#include "recorder/drain.h"

#include "format/block.h"
#include "recorder/background.h"
#include "recorder/emit.h"
#include "recorder/self.h"
#include "recorder/stream.h"
#include "recorder/symbols.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BODY_BYTES (4u << 20)
#define HEAD_BYTES (1u << 20)
#define COARSE_BYTES (1u << 20)
#define DONE_MAX 4096u
#define MAX_SLOTS 8192u
#define SHORTEST_WAIT_NS 10000000
#define LONGEST_WAIT_NS 50000000
#define IDLE_WAIT_NS 100000000 /* twice that after so many in a row: */
#define IDLE_PASSES 10
#define WAIT_PART 64       /* of the pool may fill up between two passes */
#define STALE_NS 250000000 /* an active chunk is looked at this often */
#define SECOND 1000000000ll
#define STACK_BYTES (256u << 10)
#define STOP_SECONDS 10 /* a disk that does not answer must not keep the program from ending */

uint32_t emit_rotations;

/* ---- what goes before the events ------------------------------------------------------------------------------------------ */

/* Is there a file that rotation keeps? Inputs and frames, which may be many, are in that one only. */
static bool has_coarse(const struct drain *drain)
{
	return drain->coarse.path[0] && !drain->coarse.is_lost;
}

static bool head_has_room(const struct drain_head *head, size_t bytes)
{
	return HEAD_BYTES - head->bytes >= bytes + sizeof(struct stepscope_block);
}

/* What there is of it goes to its file now. */
static bool write_head(struct drain_head *head, struct segment_file *file)
{
	if (file->is_failing || !segment_file_append(file, head->data, head->bytes, NULL, 0))
		return false;
	head->bytes = 0;
	return true;
}

/* False: there is no room, now that the file takes nothing. */
static bool put_block(struct drain_head *head, struct segment_file *file, enum stepscope_block_kind kind,
                      uint32_t stream, const void *data, size_t bytes)
{
	if (!head_has_room(head, bytes) && !write_head(head, file))
		return false;
	head->bytes += block_write(head->data + head->bytes, kind, stream, data, bytes);
	return true;
}

static bool put_head(struct drain *drain, enum stepscope_block_kind kind, uint32_t stream, const void *data,
                     size_t bytes)
{
	if (has_coarse(drain))
		(void)put_block(&drain->coarse_head, &drain->coarse, kind, stream, data, bytes);
	return put_block(&drain->head, &drain->file, kind, stream, data, bytes);
}

/* The names that are new to a file. More than fit go to it at once. */
static void put_names(struct drain_head *head, struct segment_file *file, bool has_details)
{
	for (;;) {
		uint8_t *room = head->data + head->bytes + sizeof(struct stepscope_block);
		size_t maximum = head_has_room(head, 0) ? HEAD_BYTES - head->bytes - sizeof(struct stepscope_block) : 0;
		size_t bytes = symbols_take(&head->symbols_from, has_details, room, maximum);
		if (bytes) {
			put_block(head, file, STEPSCOPE_BLOCK_SYMBOLS, 0, room, bytes);
			continue;
		}
		if (maximum >= SYMBOLS_MAX_TEXT + 16 || !write_head(head, file))
			return;
	}
}

static void put_symbols(struct drain *drain)
{
	uint32_t late = symbols_take_late();
	struct drain_head *heads[] = {&drain->head, &drain->coarse_head};
	for (int i = 0; i < 2; i++)
		if (late && late <= heads[i]->symbols_from)
			heads[i]->symbols_from = late - 1;
	if (has_coarse(drain))
		put_names(&drain->coarse_head, &drain->coarse, true);
	put_names(&drain->head, &drain->file, !has_coarse(drain));
}

/* The highest number up to which the files have all names. */
static uint32_t names_written(const struct drain *drain)
{
	bool is_whole = drain->head.bytes == 0 && (!has_coarse(drain) || drain->coarse_head.bytes == 0);
	uint32_t details = has_coarse(drain) ? drain->coarse_head.symbols_from : UINT32_MAX;
	if (!is_whole)
		return 0;
	return details < drain->head.symbols_from ? details : drain->head.symbols_from;
}

/* A forked child has all names of its parent, which may be many more than its pool has room for; so what there is at the start goes to the
 * files at once, and the pool holds only what came since the last pass. */
static void write_first_names(struct drain *drain, bool is_new)
{
	put_symbols(drain);
	(void)write_head(&drain->head, &drain->file);
	if (has_coarse(drain))
		(void)write_head(&drain->coarse_head, &drain->coarse);
	if (is_new)
		drain->segment_head_bytes = drain->file.bytes;
	symbols_attach_pool(drain->pool, names_written(drain));
}

static void put_stream(struct drain *drain, uint32_t index, bool is_exited)
{
	const struct stepscope_slot *slot = &drain->pool->slots[index];
	uint32_t version = __atomic_load_n(&streams.cursors[index].name_version, __ATOMIC_ACQUIRE);
	struct {
		struct stepscope_stream_info info;
		char name[32];
	} data = {{slot->kind, slot->tid, 0, 0}, ""};
	uint64_t words[sizeof(data.name) / 8];
	for (size_t i = 0; i < sizeof(words) / 8; i++)
		words[i] = __atomic_load_n((const uint64_t *)(const void *)slot->name + i, __ATOMIC_RELAXED);
	memcpy(data.name, words, sizeof(data.name));
	data.name[31] = 0;
	data.info.name_bytes = (uint32_t)strlen(data.name);
	data.info.flags = (slot->tid == (uint32_t)getpid() ? 1u : 0u) | (is_exited ? 2u : 0u);
	drain->streams[index].name_version = version;
	drain->streams[index].is_described = put_head(drain, STEPSCOPE_BLOCK_STREAM, drain->streams[index].stream,
	                                              &data, sizeof(data.info) + data.info.name_bytes);
}

static void put_drops(struct drain *drain, uint32_t stream, const uint64_t *by_type, uint64_t *said)
{
	struct stepscope_drops drops; /* a copy: the threads go on counting */
	uint64_t sum = 0;
	for (int i = 0; i < STEPSCOPE_EVENT_TYPES; i++)
		sum += drops.by_type[i] = __atomic_load_n(&by_type[i], __ATOMIC_RELAXED);
	if (sum == *said)
		return;
	if (put_head(drain, STEPSCOPE_BLOCK_DROPS, stream, &drops, sizeof(drops)))
		*said = sum;
}

static void put_anchor(struct drain *drain, int64_t now_ns)
{
	struct stepscope_anchor anchor;
	bool was_replaced = clock_recheck();
	clock_anchor(&anchor);
	put_head(drain, STEPSCOPE_BLOCK_CLOCK, 0, &anchor, sizeof(anchor));
	drain->pool->header->last_anchor = anchor;
	/* dense at the start, so that a short run has a rate; then once a second */
	drain->anchor_gap_ns = drain->anchor_gap_ns * 10 < SECOND ? drain->anchor_gap_ns * 10 : SECOND;
	drain->next_anchor_ns = now_ns + drain->anchor_gap_ns;
	if (was_replaced)
		recorder_say(
			"the kernel does not trust the processor's time stamp counter any more; going on with the system clock");
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

/* Copies the coarse ones of words[0..count), complete events all, to the file that rotation keeps. */
static void copy_coarse(struct drain *drain, uint32_t stream, const uint64_t *words, size_t count, uint64_t base)
{
	bool is_begun = false;
	for (size_t at = 0; at < count;) {
		uint32_t head = (uint32_t)(words[at] >> 32);
		uint32_t payload = head >> 4 & 15;
		if ((head & 15) == STEPSCOPE_EVENT_TIME) {
			base = words[at + 1];
		} else if (event_is_coarse(head)) {
			uint64_t tick = base + (uint32_t)((uint32_t)words[at] - (uint32_t)base);
			if (!is_begun)
				encoder_begin(drain->coarse_encoder, stream, drain->coarse_words, recorder_clock.shift);
			is_begun = true;
			encoder_add_event(drain->coarse_encoder, head, tick, words + at + 1);
		}
		at += 1 + payload;
	}
	if (!is_begun)
		return;
	drain->coarse_words += encoder_words(drain->coarse_encoder);
	drain->coarse_bytes += encoder_finish(drain->coarse_encoder, 0, drain->coarse_body + drain->coarse_bytes);
}

static void finish_block(struct drain *drain, struct drained_stream *stream)
{
	__atomic_store_n(&drain->events, drain->events + encoder_events(drain->encoder), __ATOMIC_RELAXED);
	stream->next_word += encoder_words(drain->encoder);
	drain->body_bytes += encoder_finish(drain->encoder, 0, drain->body + drain->body_bytes);
}

static bool body_has_room(const struct drain *drain)
{
	return BODY_BYTES - drain->body_bytes >= 2 * BLOCK_MAX_EVENT_BYTES && drain->done_count < DONE_MAX &&
	       COARSE_BYTES - drain->coarse_bytes >= 2 * BLOCK_MAX_EVENT_BYTES;
}

/* Encodes what the stream has. False when this pass has no more room. */
static bool drain_stream(struct drain *drain, struct drained_stream *stream)
{
	bool has_room = true;
	encoder_begin(drain->encoder, stream->stream, stream->next_word, recorder_clock.shift);
	for (;;) {
		/* first whether there is a successor, then the words: so nothing can come in between */
		uint32_t next = __atomic_load_n(&stream->chunk->next, __ATOMIC_ACQUIRE);
		const uint64_t *words = stream->chunk->words + stream->offset;
		uint64_t base = stream->base;
		size_t used = encoder_add(drain->encoder, words, STEPSCOPE_CHUNK_WORDS - stream->offset, &stream->base);
		if (drain->coarse.path[0] && used)
			copy_coarse(drain, stream->stream, words, used, base);
		stream->offset += (uint32_t)used;
		if (encoder_is_full(drain->encoder)) {
			finish_block(drain, stream);
			encoder_begin(drain->encoder, stream->stream, stream->next_word, recorder_clock.shift);
			has_room = body_has_room(drain);
			if (!has_room)
				break;
			continue;
		}
		if (next == 0)
			break;
		drain->done[drain->done_count++] = stream->chunk;
		stream->chunk = &drain->pool->chunks[next - 1];
		stream->offset = 0;
		stream->base = stream->chunk->base_tick;
		has_room = body_has_room(drain);
		if (!has_room)
			break;
	}
	finish_block(drain, stream);
	return has_room;
}

/* What a thread dropped and could not say any more, because it has ended. */
static void drain_last_gap(struct drain *drain, struct drained_stream *stream, const struct stepscope_slot *slot)
{
	if (slot->gap_count == 0)
		return;
	const uint64_t payload[3] = {
		slot->gap_count, (uint64_t)(uint32_t)slot->gap_net << 32 | (uint32_t)slot->gap_lowest, slot->gap_tick};
	encoder_begin(drain->encoder, stream->stream, stream->next_word, recorder_clock.shift);
	encoder_add_event(drain->encoder, 3u << 4 | STEPSCOPE_EVENT_GAP, slot->gap_tick, payload);
	finish_block(drain, stream);
}

static bool slot_is_due(const struct drained_stream *stream, int64_t now_ns, bool is_forced)
{
	return is_forced || __atomic_load_n(&stream->chunk->next, __ATOMIC_ACQUIRE) != 0 ||
	       now_ns - stream->last_ns >= STALE_NS;
}

static bool begin_slot(struct drain *drain, uint32_t index)
{
	struct drained_stream *stream = &drain->streams[index];
	uint32_t number = __atomic_load_n(&streams.cursors[index].stream, __ATOMIC_ACQUIRE);
	if (number == 0 || number == stream->stream)
		return number != 0 && stream->chunk;
	uint32_t first = __atomic_load_n(&streams.cursors[index].first_chunk, __ATOMIC_ACQUIRE);
	if (first == 0)
		return false; /* no event yet: come again */
	*stream = (struct drained_stream){.stream = number, .dropped = stream->dropped};
	stream->chunk = &drain->pool->chunks[first - 1];
	stream->base = stream->chunk->base_tick;
	return true;
}

/* One slot in one pass. False when there is no more room. */
static bool drain_slot(struct drain *drain, uint32_t index, int64_t now_ns, bool is_forced)
{
	struct drained_stream *stream = &drain->streams[index];
	struct stepscope_slot *slot = &drain->pool->slots[index];
	struct cursor *cursor = &streams.cursors[index];
	bool is_exited = __atomic_load_n(&cursor->is_exited, __ATOMIC_ACQUIRE);
	bool has_room = true;
	if (stream->is_ended)
		return true;
	if (begin_slot(drain, index) && (is_exited || slot_is_due(stream, now_ns, is_forced))) {
		has_room = drain_stream(drain, stream);
		stream->last_ns = now_ns;
		if (!stream->is_described ||
		    stream->name_version != __atomic_load_n(&cursor->name_version, __ATOMIC_ACQUIRE))
			put_stream(drain, index, false);
	}
	if (__atomic_load_n(&cursor->stream, __ATOMIC_RELAXED) == 0)
		return has_room;
	put_drops(drain, cursor->stream, slot->dropped, &stream->dropped);
	if (is_exited && has_room && drain->done_count < DONE_MAX) {
		if (stream->stream) {
			drain_last_gap(drain, stream, slot);
			put_stream(drain, index, true);
			drain->done[drain->done_count++] = stream->chunk;
		}
		/* its drops and its name are in the slot until they are in the file */
		stream->is_ended = true;
		drain->ended[drain->ended_count++] = index;
	}
	return has_room;
}

/* ---- a pass ---------------------------------------------------------------------------------------------------------------- */

static void free_done(struct drain *drain)
{
	for (uint32_t i = 0; i < drain->done_count; i++)
		pool_push(drain->pool, drain->done[i]);
	for (uint32_t i = 0; i < drain->ended_count; i++) {
		drain->streams[drain->ended[i]] = (struct drained_stream){0};
		streams_free_slot(drain->ended[i]);
	}
	drain->freed_count += drain->done_count;
	drain->done_count = drain->ended_count = 0;
}

/* Everything a segment needs to be readable alone. */
static void begin_segment(struct drain *drain, bool is_new)
{
	struct stepscope_anchor anchor;
	if (is_new)
		drain->head.symbols_from = 0;
	clock_anchor(&anchor);
	put_head(drain, STEPSCOPE_BLOCK_CLOCK, 0, &drain->pool->header->first_anchor, sizeof(anchor));
	put_head(drain, STEPSCOPE_BLOCK_CLOCK, 0, &anchor, sizeof(anchor));
	for (uint32_t i = 0; i < __atomic_load_n(&streams.high, __ATOMIC_ACQUIRE) && i < MAX_SLOTS; i++)
		if (drain->streams[i].stream)
			put_stream(drain, i, false);
}

/* The coarse file counts, too; but where it is most of what may be kept, operators get half of it all the same. */
static int64_t left_to_keep(const struct drain *drain, int64_t keep_bytes)
{
	int64_t left = keep_bytes - (int64_t)drain->coarse.bytes;
	return left > keep_bytes / 2 ? left : keep_bytes / 2;
}

static void rotate_if_due(struct drain *drain, const struct drain_limits *limits, int64_t now_ns)
{
	struct segment_file *file = &drain->file;
	int64_t age_limit = limits->keep_ns ? limits->keep_ns / 8 : 0;
	bool is_due = (limits->segment_bytes &&
	               file->bytes > drain->segment_head_bytes + (uint64_t)limits->segment_bytes) ||
	              (age_limit && now_ns - file->opened_ns > age_limit && file->bytes > 4096);
	if (!is_due || file->is_failing || file->is_lost || now_ns < drain->next_rotation_ns)
		return;
	int reason = segment_file_rotate(file, left_to_keep(drain, limits->keep_bytes), limits->keep_ns, now_ns);
	drain->next_rotation_ns = reason ? now_ns + SECOND : 0;
	if (reason < 0) {
		file->is_lost = true;
		recorder_say("cannot make the next file in '%s': %s; training goes on, nothing more is recorded",
		             file->directory, strerror(-reason));
	}
	if (reason)
		return;
	if (limits->keep_bytes || limits->keep_ns)
		__atomic_fetch_add(&emit_rotations, 1, __ATOMIC_RELAXED);
	snprintf(drain->pool->header->segment_path, sizeof(drain->pool->header->segment_path), "%s", file->path);
	drain->pool->header->identity = file->identity;
	begin_segment(drain, true);
	put_symbols(drain);
	(void)write_head(&drain->head, file);
	drain->segment_head_bytes = file->bytes;
}

static void write_coarse(struct drain *drain)
{
	struct drain_head *head = &drain->coarse_head;
	bool is_written = segment_file_append(&drain->coarse, head->data, head->bytes, drain->coarse_body,
	                                      drain->coarse_bytes);
	if (is_written || !has_coarse(drain))
		head->bytes = 0;
	/* what cannot be written now waits for the next pass, as long as there is room for it */
	if (is_written || COARSE_BYTES - drain->coarse_bytes < 2 * BLOCK_MAX_EVENT_BYTES)
		drain->coarse_bytes = 0;
}

static void write_pass(struct drain *drain)
{
	if (drain->head.bytes + drain->body_bytes + drain->done_count + drain->ended_count == 0)
		return;
	if (!segment_file_append(&drain->file, drain->head.data, drain->head.bytes, drain->body, drain->body_bytes))
		return; /* kept: the next pass tries again, until then the pool fills up and events are counted */
	if (drain->coarse.path[0])
		write_coarse(drain);
	drain->head.bytes = drain->body_bytes = 0;
	free_done(drain);
	symbols_free_copies(names_written(drain));
}

static void tell_full_table(struct drain *drain)
{
	if (drain->is_full_told || !symbols_are_full())
		return;
	drain->is_full_told = true;
	recorder_say(
		"the program uses more names than there is room for (about 250,000); further ones are recorded as '(too many "
		"names)', values of further counters are dropped and counted");
}

/* One pass over all streams; true when more is waiting. */
static bool pass(struct drain *drain, int64_t now_ns, bool is_forced)
{
	bool has_room = true, was_failing = drain->file.is_failing;
	uint32_t high = __atomic_load_n(&streams.high, __ATOMIC_ACQUIRE);
	if (drain->file.is_lost)
		return false;
	pool_mend(drain->pool);
	if (!was_failing) {
		/* on from where the last one had no more room: nobody is left waiting behind a busy thread */
		for (uint32_t i = 0; i < high && has_room; i++) {
			uint32_t slot = drain->next_slot < high ? drain->next_slot : 0;
			has_room = body_has_room(drain) && drain_slot(drain, slot, now_ns, is_forced);
			drain->next_slot = has_room ? slot + 1 : slot;
		}
		put_drops(drain, 0, drain->pool->header->dropped, &drain->dropped_without_slot);
		put_symbols(drain);
		tell_full_table(drain);
	}
	write_pass(drain);
	/* a file that takes data again has got what was kept; the rest waits in the pool */
	return (!has_room || was_failing) && !drain->file.is_failing;
}

static void run_passes(struct drain *drain, bool is_forced)
{
	/* bounded, so that producers that never stop cannot keep a flush from ending; at the end there are none */
	for (int i = 0; (i < 64 || drain->is_stopping) && pass(drain, clock_raw_ns(), is_forced); i++)
		rotate_if_due(drain, &drain->limits, clock_raw_ns());
}

static void every_second(struct drain *drain, struct drain_limits *limits, int64_t now_ns)
{
	drain->next_sample_ns = now_ns + SECOND;
	segment_file_check(&drain->file);
	streams_find_dead(256);
	if (limits->is_self_sampled)
		self_sample(drain->events, CLOCK_THREAD_CPUTIME_ID);
	if (limits->fdatasync_ns && now_ns >= drain->next_sync_ns && own_fd_is_ours(&drain->file.file)) {
		fdatasync(drain->file.file.fd);
		drain->next_sync_ns = now_ns + limits->fdatasync_ns;
	}
}

/* Until a part of the pool is full at the pace of the last `since_ns`: so blocks are big, and there is room for a burst at many
 * times that pace. */
static int64_t next_wait_ns(struct drain *drain, int64_t since_ns)
{
	uint32_t count = drain->pool->header->chunk_count, freed = drain->freed_count;
	drain->freed_count = 0;
	if (!pool_is_populated(drain->pool))
		return 0;
	if (freed == 0)
		return ++drain->idle_passes > IDLE_PASSES ? 2 * IDLE_WAIT_NS : IDLE_WAIT_NS;
	drain->idle_passes = 0;
	int64_t wait_ns = since_ns / freed * (count / WAIT_PART);
	return wait_ns < SHORTEST_WAIT_NS ? SHORTEST_WAIT_NS : wait_ns > LONGEST_WAIT_NS ? LONGEST_WAIT_NS : wait_ns;
}

static void sleep_until_woken(struct drain *drain, uint32_t seen, int64_t ns)
{
	struct timespec wait = {.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
	if (ns == 0)
		return;
	syscall(SYS_futex, &drain->wake, FUTEX_WAIT_PRIVATE, seen, &wait, NULL, 0);
}

/* The number of the request, which passes_done reaches when it was served. */
static uint32_t wake(struct drain *drain)
{
	uint32_t number = __atomic_add_fetch(&drain->wake, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &drain->wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return number;
}

static void tell_number(uint32_t *at, uint32_t number)
{
	__atomic_store_n(at, number, __ATOMIC_RELEASE);
	syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Until it was told. Bounded: a stuck disk must not hold up the program for good. */
static void await_number(const uint32_t *at, uint32_t number)
{
	for (;;) {
		uint32_t now = __atomic_load_n(at, __ATOMIC_ACQUIRE);
		const struct timespec wait = {.tv_sec = 1};
		if ((int32_t)(now - number) >= 0)
			return;
		if (syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, now, &wait, NULL, 0) != 0 && errno == ETIMEDOUT)
			return;
	}
}

static void put_end(struct drain *drain)
{
	for (uint32_t i = 0; i < __atomic_load_n(&streams.high, __ATOMIC_ACQUIRE) && body_has_room(drain); i++)
		if (drain->streams[i].stream && !drain->streams[i].is_ended)
			drain_last_gap(drain, &drain->streams[i], &drain->pool->slots[i]);
	put_anchor(drain, clock_raw_ns());
	write_pass(drain);
	if (drain->file.is_failing)
		return; /* it did not end well, and a reader must see that */
	put_head(drain, STEPSCOPE_BLOCK_END, 0, drain->end_reason, strlen(drain->end_reason));
	write_pass(drain);
}

static void *drain_main(void *argument)
{
	struct drain *drain = argument;
	uint32_t served = 0;
	int64_t last_ns = clock_raw_ns();
	prctl(PR_SET_NAME, "stepscope");
	tell_number(&drain->has_begun, 1);
	streams_prepare_stop();
	pool_grow_symbols(drain->pool);
	for (;;) {
		uint32_t seen = __atomic_load_n(&drain->wake, __ATOMIC_ACQUIRE);
		bool is_forced = seen != served;
		bool is_stopping = __atomic_load_n(&drain->is_stopping, __ATOMIC_ACQUIRE);
		int64_t now_ns = clock_raw_ns();
		if (now_ns >= drain->next_sample_ns && !is_stopping)
			every_second(drain, &drain->limits, now_ns);
		if (now_ns >= drain->next_anchor_ns)
			put_anchor(drain, now_ns);
		rotate_if_due(drain, &drain->limits, now_ns);
		pool_populate(drain->pool, 128);
		if (is_stopping)
			streams_find_dead(UINT32_MAX);
		run_passes(drain, is_forced || is_stopping);
		background_work();
		if (is_forced) {
			served = seen;
			tell_number(&drain->passes_done, seen);
		}
		if (is_stopping) {
			put_end(drain);
			return NULL;
		}
		sleep_until_woken(drain, seen, next_wait_ns(drain, now_ns - last_ns));
		last_ns = now_ns;
	}
}

/* ---- start and stop -------------------------------------------------------------------------------------------------------- */

static void *map_zeroed(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

/* Kept for the life of the process: a later session uses it again. */
static bool get_memory(struct drain *drain)
{
	if (drain->streams) {
		memset(drain->streams, 0, MAX_SLOTS * sizeof(*drain->streams));
		return true;
	}
	drain->encoder = map_zeroed(encoder_bytes());
	drain->coarse_encoder = map_zeroed(encoder_bytes());
	drain->head.data = map_zeroed(HEAD_BYTES);
	drain->coarse_head.data = map_zeroed(HEAD_BYTES);
	drain->body = map_zeroed(BODY_BYTES);
	drain->coarse_body = map_zeroed(COARSE_BYTES);
	drain->done = map_zeroed(DONE_MAX * sizeof(*drain->done));
	drain->ended = map_zeroed(MAX_SLOTS * sizeof(*drain->ended));
	struct drained_stream *all = map_zeroed(MAX_SLOTS * sizeof(*all));
	if (!drain->encoder || !drain->coarse_encoder || !drain->head.data || !drain->coarse_head.data ||
	    !drain->body || !drain->coarse_body || !drain->done || !drain->ended)
		return false;
	drain->streams = all;
	return all != NULL;
}

/* Goes on in the file of an earlier session of this process where there is one. */
static bool reopen_files(struct drain *drain, const struct drain_start *how)
{
	bool is_ours = drain->file.path[0] && drain->file.identity.pid == how->identity->pid &&
	               drain->file.identity.clock == how->identity->clock && /* the ticks go on in the same unit */
	               strcmp(drain->file.directory, how->directory) == 0 && !drain->file.is_lost;
	if (!is_ours || segment_file_reopen(&drain->file) != 0)
		return false;
	if (drain->coarse.path[0] && segment_file_reopen(&drain->coarse) != 0) {
		drain->coarse.path[0] = 0;
		drain->head.symbols_from = 0; /* what that one had is gone */
	}
	return true;
}

static int open_files(struct drain *drain, const struct drain_start *how)
{
	segment_file_init(&drain->file, how->directory, how->identity);
	segment_file_init(&drain->coarse, how->directory, how->identity);
	drain->coarse.identity.flags |= STEPSCOPE_SEGMENT_COARSE;
	bool has_coarse = how->limits.keep_bytes || how->limits.keep_ns;
	int reason = has_coarse ? segment_file_open(&drain->coarse) : 0;
	if (reason == 0)
		reason = segment_file_open(&drain->file);
	if (reason && drain->coarse.file.fd >= 0) {
		segment_file_close(&drain->coarse);
		unlink(drain->coarse.path);
	}
	return reason;
}

static int start_thread(struct drain *drain)
{
	sigset_t all, old;
	pthread_attr_t attributes;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	/* the priority of a real-time thread is its own, not for us */
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* the program's handlers never run on our thread */
	int reason = pthread_create(&drain->thread, &attributes, drain_main, drain);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	return reason;
}

enum drain_mode drain_mode(const struct drain *drain)
{
	return __atomic_load_n(&drain->mode, __ATOMIC_ACQUIRE);
}

static void set_mode(struct drain *drain, enum drain_mode mode)
{
	__atomic_store_n(&drain->mode, mode, __ATOMIC_RELEASE);
}

/* Nobody else is at it, or will be. */
static bool take_work(struct drain *drain)
{
	return drain_mode(drain) == DRAIN_HERE && __atomic_exchange_n(&drain->is_at_work, 1, __ATOMIC_ACQ_REL) == 0;
}

static void leave_work(struct drain *drain)
{
	__atomic_store_n(&drain->is_at_work, 0, __ATOMIC_RELEASE);
}

enum start_problem drain_start(struct drain *drain, const struct drain_start *how, int *reason)
{
	if (!get_memory(drain))
		return START_NO_MEMORY;
	drain->pool = how->pool;
	drain->limits = how->limits;
	drain->head.bytes = drain->coarse_head.bytes = drain->body_bytes = drain->coarse_bytes = 0;
	drain->done_count = drain->ended_count = 0;
	drain->is_stopping = drain->has_begun = 0;
	drain->next_rotation_ns = 0;
	drain->dropped_without_slot = 0;
	bool was_failing = drain->file.is_failing; /* then names and streams were lost with what it could not write */
	bool is_new = !reopen_files(drain, how);
	drain->is_continued = !is_new;
	*reason = is_new ? open_files(drain, how) : 0;
	if (*reason)
		return START_NO_FILE;
	struct stepscope_pool_header *header = how->pool->header;
	snprintf(header->segment_path, sizeof(header->segment_path), "%s", drain->file.path);
	header->identity = drain->file.identity;
	header->shift = recorder_clock.shift;
	clock_anchor(&header->first_anchor);
	header->last_anchor = header->first_anchor;
	drain->anchor_gap_ns = 1000000;
	drain->next_anchor_ns = clock_raw_ns() + 10000000;
	drain->next_sample_ns = clock_raw_ns() + 5000000;
	if (is_new || was_failing)
		drain->coarse_head.symbols_from = 0;
	begin_segment(drain, is_new || was_failing);
	write_first_names(drain, is_new);
	pool_populate(how->pool, 4);
	if (!how->is_inline && start_thread(drain) == 0) {
		set_mode(drain, DRAIN_BY_THREAD);
		/* a thread that begins allocates: a fork in that moment leaves the locks of some allocators (ASan's) held for ever */
		await_number(&drain->has_begun, 1);
	} else {
		leave_work(drain);
		set_mode(drain, DRAIN_HERE);
		pool_grow_symbols(how->pool);
		background_work();
	}
	return START_OK;
}

/* Between take_work() and leave_work(). */
static void drain_once(struct drain *drain)
{
	int64_t now_ns = clock_raw_ns();
	if (now_ns >= drain->next_anchor_ns)
		put_anchor(drain, now_ns);
	rotate_if_due(drain, &drain->limits, now_ns);
	run_passes(drain, true);
}

bool drain_here(struct drain *drain)
{
	if (!take_work(drain))
		return false;
	drain_once(drain);
	leave_work(drain);
	return true;
}

void drain_wake(struct drain *drain)
{
	(void)wake(drain);
}

void drain_flush(struct drain *drain)
{
	if (drain_mode(drain) == DRAIN_HERE)
		(void)drain_here(drain);
	else if (drain_mode(drain) == DRAIN_BY_THREAD)
		await_number(&drain->passes_done, wake(drain));
}

bool drain_stop(struct drain *drain, const char *reason)
{
	struct timespec deadline;
	const enum drain_mode mode = drain_mode(drain);
	if (mode == DRAIN_OFF)
		return true;
	snprintf(drain->end_reason, sizeof(drain->end_reason), "%s", reason);
	__atomic_store_n(&drain->is_stopping, 1, __ATOMIC_RELEASE);
	(void)wake(drain);
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += STOP_SECONDS;
	if (mode == DRAIN_HERE) {
		if (!take_work(drain)) /* and never left: a flush beside it finds nothing to do */
			return false;
		drain_once(drain);
		put_end(drain);
	} else if (pthread_timedjoin_np(drain->thread, NULL, &deadline) != 0) {
		recorder_say("'%s' could not be finished within %d s; the rest of it stays in memory for the rescue",
		             drain->file.path, STOP_SECONDS);
		return false;
	}
	set_mode(drain, DRAIN_OFF);
	segment_file_close(&drain->file);
	segment_file_close(&drain->coarse);
	bool has_names = !has_coarse(drain) || drain->coarse_head.bytes == 0;
	drain->pool->header->is_closed = !drain->file.is_failing && !drain->file.is_lost && drain->body_bytes == 0 &&
	                                 has_names;
	return true;
}

void drain_forget(struct drain *drain)
{
	segment_file_close(&drain->file); /* the parent's: its own descriptor stays open */
	segment_file_close(&drain->coarse);
	drain->file.path[0] = drain->coarse.path[0] = 0;
	drain->mode = DRAIN_OFF;
	drain->wake = drain->passes_done = 0;
	drain->events = 0;
}
