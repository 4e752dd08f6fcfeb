/* SPDX-License-Identifier: Apache-2.0
 *
 * fold.c: appends the pool of a dead process to its segment. Events that the segments of the session already have are
 * left out. Two parts of the segment are cut off first, because the pool still has their events. One is a torn last
 * block. The other is the work of an earlier rescue of this pool that was killed; the second rescue writes the same
 * bytes again.
 */
#include "format/fold.h"

#include "base/file_limit.h"
#include "format/block.h"
#include "format/place.h"
#include "format/segment.h"
#include "format/stream_map.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_POOL_BYTES (4ull << 30)
#define MAX_TORN_BYTES (32u << 20) /* more than one write of the drainer */
#define ORPHAN_SECONDS 3600
#define RESCUE_MS 5000  /* longest wait for other rescues, in total */
#define PARENT_TRIES 20 /* one millisecond each */

struct fold_state {
	uint8_t *bytes; /* copy of the pool, because its file may be truncated meanwhile */
	uint64_t length;
	const struct stepscope_pool_header *header;
	const struct stepscope_slot *slots;
	const uint8_t *symbols;
	const struct stepscope_chunk *chunks;
	struct stream_map covered; /* words of each stream that the segments have */
	uint8_t *symbol_seen;      /* indexed by number: in the segment already */
	int out;
	struct encoder *encoder;
	uint8_t *block;
	struct fold_result *result;
	int write_error; /* errno of the first write that failed; 0: none did */
};

/* ---- the pool ---------------------------------------------------------------------------------------------------- */

static bool fold_read_all(int fd, uint8_t *out, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes;) {
		ssize_t n = pread(fd, out + at, bytes - at, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += (uint64_t)n;
	}
	return true;
}

static bool layout_is_sane(const struct stepscope_pool_header *header, uint64_t bytes)
{
	return memcmp(header->magic, STEPSCOPE_POOL_MAGIC, 8) == 0 && header->slot_count <= 65536 &&
	       header->slots_offset <= bytes && header->symbols_offset <= bytes && header->chunks_offset <= bytes &&
	       (header->slots_offset | header->symbols_offset | header->chunks_offset) % 8 == 0 &&
	       header->slots_offset + header->slot_count * sizeof(struct stepscope_slot) <= bytes &&
	       header->symbols_bytes <= bytes - header->symbols_offset &&
	       header->symbols_used <= header->symbols_bytes &&
	       header->chunk_count <= (bytes - header->chunks_offset) / sizeof(struct stepscope_chunk) &&
	       header->shift < 32 && memchr(header->segment_path, 0, sizeof(header->segment_path));
}

static enum status load_pool(struct fold_state *fold, const char *path, int fd, struct error *err)
{
	struct stat info;
	if (fstat(fd, &info) != 0)
		return error_errno(err, STATUS_INPUT, errno, "cannot examine the pool '%s'", path);
	fold->length = (uint64_t)info.st_size;
	if (fold->length < sizeof(struct stepscope_pool_header) || fold->length > MAX_POOL_BYTES)
		return error_set(err, STATUS_INPUT, "'%s' is not a pool: %" PRIu64 " bytes", path, fold->length);
	fold->bytes = malloc(fold->length);
	if (!fold->bytes)
		return error_set(err, STATUS_NO_MEMORY, "no memory for the pool '%s' (%" PRIu64 " bytes)", path,
		                 fold->length);
	if (!fold_read_all(fd, fold->bytes, fold->length))
		return error_errno(err, STATUS_INPUT, errno, "cannot read the pool '%s'", path);
	fold->header = (const struct stepscope_pool_header *)fold->bytes;
	if (!layout_is_sane(fold->header, fold->length))
		return error_set(err, STATUS_INPUT, "'%s' is not a pool, or it was damaged", path);
	fold->slots = (const struct stepscope_slot *)(fold->bytes + fold->header->slots_offset);
	fold->symbols = fold->bytes + fold->header->symbols_offset;
	fold->chunks = (const struct stepscope_chunk *)(fold->bytes + fold->header->chunks_offset);
	return STATUS_OK;
}

/* Returns a descriptor of the pool. All users share /dev/shm, so only a plain file of this user is accepted as a pool.
 * Returns -1 otherwise. */
static int open_pool(const char *path, bool is_held)
{
	struct stat info;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | (is_held ? 0 : O_NOFOLLOW));
	if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid())) {
		close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

/* Takes the lock that a living owner holds. Returns false if the owner lives or another rescue is running. */
static bool lock_pool(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	return fcntl(fd, F_SETLK, &lock) == 0;
}

/* ---- content of the segments ------------------------------------------------------------------------------------- */

static bool note_block(void *context, const struct stepscope_block *block)
{
	struct fold_state *fold = context;
	uint64_t end = block->first_word + block->words;
	uint64_t *covered = stream_map_at(&fold->covered, block->stream);
	if (covered && end > *covered)
		*covered = end;
	return false; /* only the header is needed */
}

static bool note_symbol(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	struct fold_state *fold = context;
	(void)kind;
	(void)text;
	(void)length;
	if (id < 1u << 24)
		fold->symbol_seen[id / 8] |= (uint8_t)(1u << id % 8);
	return true;
}

static bool is_of_session(void *context, const struct stepscope_segment_header *header)
{
	const struct fold_state *fold = context;
	const struct stepscope_segment_header *mine = &fold->header->identity;
	return header->session == mine->session && header->pid == mine->pid &&
	       !(header->flags & STEPSCOPE_SEGMENT_COARSE);
}

/* Reads <stem>.*.ssr in the segment's directory, because rotation may have spread a stream over several files. */
static void note_siblings(struct fold_state *fold, const char *segment)
{
	const struct segment_visitor visitor = {.context = fold, .header = is_of_session, .wants_events = note_block};
	char directory[1400], stem[1400], path[1700];
	const char *slash = strrchr(segment, '/');
	snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - segment) : 1, slash ? segment : ".");
	snprintf(stem, sizeof(stem), "%s", slash ? slash + 1 : segment);
	for (int dots = 0; dots < 2 && strrchr(stem, '.'); dots++)
		*strrchr(stem, '.') = 0;
	DIR *dir = opendir(directory);
	if (!dir)
		return;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		struct segment_stats stats;
		if (strncmp(entry->d_name, stem, strlen(stem)) != 0 || entry->d_name[strlen(stem)] != '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (strcmp(path, segment) != 0 && segment_read(path, &visitor, &stats, NULL) != STATUS_OK)
			continue; /* an unreadable one covers nothing */
	}
	closedir(dir);
}

static bool skip_events(void *context, const struct stepscope_block *block)
{
	return false;
}

static uint64_t pool_number(const struct fold_state *fold)
{
	return fold->header->first_anchor.tick;
}

static enum status note_segment(struct fold_state *fold, const char *segment, struct error *err)
{
	const struct segment_visitor visitor = {.context = fold, .symbol = note_symbol, .wants_events = note_block};
	struct segment_stats stats;
	fold->symbol_seen = calloc(1, (1u << 24) / 8);
	if (!fold->symbol_seen)
		return error_set(err, STATUS_NO_MEMORY, "no memory for the rescue of '%s'", segment);
	enum status status = segment_read(segment, &visitor, &stats, err);
	note_siblings(fold, segment);
	return status;
}

/* Cuts off the parts that the pool has completely: a torn end, and the blocks of a rescue that may not have
 * finished. */
static enum status cut_segment(struct fold_state *fold, const char *segment, struct error *err)
{
	const struct segment_visitor visitor = {.context = fold, .wants_events = skip_events};
	struct segment_stats stats;
	enum status status = segment_read(segment, &visitor, &stats, err);
	if (status != STATUS_OK)
		return status;
	if (stats.read_error)
		return error_errno(err, STATUS_IO, stats.read_error, "cannot read all of '%s'", segment);
	if (stats.torn_bytes > MAX_TORN_BYTES)
		return error_set(err, STATUS_IO,
		                 "the last %" PRIu64 " bytes of '%s' cannot be read; they are left as they are",
		                 stats.torn_bytes, segment);
	uint64_t good_bytes = stats.file_bytes - stats.torn_bytes;
	if (stats.rescue_offset && stats.rescue == pool_number(fold))
		good_bytes = stats.rescue_offset;
	if (ftruncate(fold->out, (off_t)good_bytes) != 0)
		return error_errno(err, STATUS_IO, errno, "cannot cut the torn end off '%s'", segment);
	return STATUS_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Appends the block in fold->block. */
static void fold_append(struct fold_state *fold, size_t bytes)
{
	if (bytes)
		block_mark_rescued(fold->block, pool_number(fold));
	for (size_t at = 0; at < bytes && !fold->write_error;) {
		ssize_t n = write(fold->out, fold->block + at, bytes - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fold->write_error = n < 0 ? errno : ENOSPC;
		else
			at += (size_t)n;
	}
	fold->result->bytes += bytes;
}

static void append_block(struct fold_state *fold, enum stepscope_block_kind kind, uint32_t stream, const void *data,
                         size_t bytes)
{
	fold_append(fold, block_write(fold->block, kind, stream, data, bytes));
}

static void append_symbols(struct fold_state *fold)
{
	const uint64_t used = fold->header->symbols_used;
	uint8_t *out = fold->block + sizeof(struct stepscope_block);
	size_t length = 0;
	for (uint64_t at = 0; at + sizeof(struct stepscope_symbol) <= used;) {
		struct stepscope_symbol symbol;
		memcpy(&symbol, fold->symbols + at, sizeof(symbol));
		size_t bytes = sizeof(symbol) + ((symbol.length + 7u) & ~7u);
		if (symbol.id == 0) { /* never completed; even its length may be missing */
			at += symbol.length ? bytes : 8;
			continue;
		}
		if (at + bytes > used)
			break;
		bool is_new = symbol.id < 1u << 24 && !(fold->symbol_seen[symbol.id / 8] & 1u << symbol.id % 8);
		if (is_new) {
			memcpy(out + length, fold->symbols + at, bytes);
			length += bytes;
		}
		at += bytes;
		if (length > 256u << 10) {
			append_block(fold, STEPSCOPE_BLOCK_SYMBOLS, 0, out, length);
			length = 0;
		}
	}
	if (length)
		append_block(fold, STEPSCOPE_BLOCK_SYMBOLS, 0, out, length);
}

static void append_stream(struct fold_state *fold, const struct stepscope_slot *slot)
{
	struct {
		struct stepscope_stream_info info;
		char name[32];
	} data = {{slot->kind, slot->tid, slot->tid == fold->header->identity.pid ? 1u : 0u, 0}, ""};
	memcpy(data.name, slot->name, sizeof(data.name) - 1);
	data.info.name_bytes = (uint32_t)strlen(data.name);
	append_block(fold, STEPSCOPE_BLOCK_STREAM, slot->stream, &data, sizeof(data.info) + data.info.name_bytes);
}

/* Appends an event after those that the segment has of the stream. */
static void append_event(struct fold_state *fold, uint32_t stream, uint32_t head, uint64_t tick,
                         const uint64_t *payload)
{
	const uint64_t *covered = stream_map_at(&fold->covered, stream);
	encoder_begin(fold->encoder, stream, covered ? *covered : 0, fold->header->shift);
	encoder_add_event(fold->encoder, head, tick, payload);
	fold_append(fold, encoder_finish(fold->encoder, 1, fold->block));
}

static void append_slots(struct fold_state *fold)
{
	for (uint32_t i = 0; i < fold->header->slot_count; i++) {
		const struct stepscope_slot *slot = &fold->slots[i];
		uint64_t dropped = 0;
		if (slot->stream == 0 || slot->stream == UINT32_MAX)
			continue;
		append_stream(fold, slot);
		for (int type = 0; type < STEPSCOPE_EVENT_TYPES; type++)
			dropped += slot->dropped[type];
		if (dropped)
			append_block(fold, STEPSCOPE_BLOCK_DROPS, slot->stream, slot->dropped, sizeof(slot->dropped));
		const uint64_t gap[3] = {slot->gap_count,
		                         (uint64_t)(uint32_t)slot->gap_net << 32 | (uint32_t)slot->gap_lowest,
		                         slot->gap_tick};
		const uint64_t call = slot->call;
		if (slot->gap_count)
			append_event(fold, slot->stream, 3u << 4 | STEPSCOPE_EVENT_GAP, slot->gap_tick, gap);
		if (call)
			append_event(fold, slot->stream,
			             STEPSCOPE_EXTENDED_CALL << 8 | 1u << 4 | STEPSCOPE_EVENT_EXTENDED,
			             fold->header->last_anchor.tick, &call);
	}
	append_block(fold, STEPSCOPE_BLOCK_DROPS, 0, fold->header->dropped, sizeof(fold->header->dropped));
}

/* Skips the first `words` words of a chunk, whose events the segment has. Returns false if they do not end at an
 * event. */
static bool skip_words(const struct stepscope_chunk *chunk, uint64_t words, uint64_t *at, uint64_t *base)
{
	for (*at = 0; *at < words;) {
		uint64_t word = *at < STEPSCOPE_CHUNK_WORDS ? chunk->words[*at] : 0;
		uint32_t head = (uint32_t)(word >> 32), payload = head >> 4 & 15;
		if (word == 0 || *at + payload >= STEPSCOPE_CHUNK_WORDS)
			return false;
		if ((head & 15) == STEPSCOPE_EVENT_TIME && payload)
			*base = chunk->words[*at + 1];
		*at += 1 + payload;
	}
	return *at == words;
}

static void append_chunk(struct fold_state *fold, const struct stepscope_chunk *chunk)
{
	uint64_t at = 0, base = chunk->base_tick;
	uint64_t *covered = stream_map_at(&fold->covered, chunk->stream);
	if (!covered)
		return;
	if (*covered > chunk->first_word && !skip_words(chunk, *covered - chunk->first_word, &at, &base))
		return;
	for (;;) {
		encoder_begin(fold->encoder, chunk->stream, chunk->first_word + at, fold->header->shift);
		size_t used = encoder_add(fold->encoder, chunk->words + at, STEPSCOPE_CHUNK_WORDS - at, &base);
		if (used == 0)
			return;
		fold->result->events += encoder_events(fold->encoder);
		fold_append(fold, encoder_finish(fold->encoder, 1, fold->block));
		at += used;
		*covered = chunk->first_word + at;
	}
}

static int compare_chunks(const void *a, const void *b)
{
	const struct stepscope_chunk *x = *(const struct stepscope_chunk *const *)a;
	const struct stepscope_chunk *y = *(const struct stepscope_chunk *const *)b;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->first_word < y->first_word ? -1 : x->first_word > y->first_word;
}

static enum status append_chunks(struct fold_state *fold, struct error *err)
{
	const struct stepscope_chunk **order = calloc(fold->header->chunk_count + 1u, sizeof(*order));
	uint32_t count = 0;
	if (!order)
		return error_set(err, STATUS_NO_MEMORY, "no memory for the rescue");
	for (uint32_t i = 0; i < fold->header->chunk_count; i++)
		if (fold->chunks[i].magic == STEPSCOPE_CHUNK_MAGIC && fold->chunks[i].stream)
			order[count++] = &fold->chunks[i];
	qsort(order, count, sizeof(*order), compare_chunks);
	for (uint32_t i = 0; i < count; i++)
		append_chunk(fold, order[i]);
	free(order);
	return STATUS_OK;
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static enum status fold_into(struct fold_state *fold, const char *segment, struct error *err)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	fold->out = open(segment, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	if (fold->out < 0)
		return error_errno(err, errno == ENOENT ? STATUS_INPUT : STATUS_IO, errno, "cannot append to '%s'",
		                   segment);
	fcntl(fold->out, F_OFD_SETLKW, &whole); /* two pools may have the same segment */
	enum status status = cut_segment(fold, segment, err);
	if (status == STATUS_OK)
		status = note_segment(fold, segment, err);
	if (status != STATUS_OK)
		return status;
	fold->encoder = calloc(1, encoder_bytes());
	fold->block = malloc(BLOCK_MAX_EVENT_BYTES + (1u << 20));
	if (!fold->encoder || !fold->block)
		return error_set(err, STATUS_NO_MEMORY, "no memory for the rescue of '%s'", segment);
	struct file_limit limit; /* the limit of the rescuing process */
	file_limit_enter(&limit);
	append_symbols(fold);
	append_block(fold, STEPSCOPE_BLOCK_CLOCK, 0, &fold->header->last_anchor, sizeof(fold->header->last_anchor));
	status = append_chunks(fold, err);
	append_slots(fold);
	file_limit_leave(&limit);
	if (status == STATUS_OK && fold->write_error)
		return error_errno(err, STATUS_IO, fold->write_error, "cannot append to '%s'", segment);
	if (status == STATUS_OK && fdatasync(fold->out) != 0)
		return error_errno(err, STATUS_IO, errno, "cannot write '%s' to the disk", segment);
	return status;
}

static void fold_fold_release(struct fold_state *fold)
{
	free(fold->bytes);
	stream_map_release(&fold->covered);
	free(fold->symbol_seen);
	free(fold->encoder);
	free(fold->block);
	if (fold->out >= 0)
		close(fold->out);
}

static enum status fold_locked(int fd, const char *path, struct fold_result *result, struct error *err)
{
	struct fold_state fold = {.out = -1, .result = result};
	enum status status = load_pool(&fold, path, fd, err);
	if (status == STATUS_OK && fold.header) {
		memcpy(result->segment_path, fold.header->segment_path, sizeof(result->segment_path));
		result->pid = fold.header->identity.pid;
		if (!fold.header->is_closed && result->segment_path[0]) {
			status = fold_into(&fold, result->segment_path, err);
			result->was_folded = status == STATUS_OK;
		}
	}
	if (result->was_folded)
		place_find(result->segment_path, result);
	fold_fold_release(&fold);
	return status;
}

static bool read_header(int fd, struct stepscope_pool_header *header)
{
	return fold_read_all(fd, (uint8_t *)header, sizeof(*header)) &&
	       memcmp(header->magic, STEPSCOPE_POOL_MAGIC, 8) == 0 &&
	       memchr(header->segment_path, 0, sizeof(header->segment_path));
}

/* Returns the start time of a living process, or 0 if there is none. */
static uint64_t start_time_of(uint32_t pid)
{
	char path[64], line[1024], *at;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	at = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL; /* the name may contain any character */
	fclose(file);
	if (!at || !at[1] || at[2] == 'Z' || at[2] == 'X')
		return 0;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

/* Returns true if the process lives and this pool is still its own. After an exec it is not. */
static bool is_in_use(const struct stepscope_pool_header *header, const char *pool_path)
{
	char path[64], line[4096 + 256], end[300];
	const char *slash = strrchr(pool_path, '/');
	bool is_found = false;
	if (!header->identity.start_time || start_time_of(header->identity.pid) != header->identity.start_time)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/maps", header->identity.pid);
	snprintf(end, sizeof(end), "%s\n", slash ? slash : pool_path);
	FILE *file = fopen(path, "re");
	if (!file)
		return true; /* not readable: leave the pool alone as long as the process lives */
	while (!is_found && fgets(line, sizeof(line), file)) {
		size_t length = strlen(line), tail = strlen(end);
		is_found = length > tail && strcmp(line + length - tail, end) == 0;
	}
	fclose(file);
	return is_found;
}

static bool fold_peek(const char *pool_path, struct stepscope_pool_header *header)
{
	int fd = open_pool(pool_path, false);
	if (fd < 0)
		return false;
	bool is_pool = read_header(fd, header);
	close(fd);
	return is_pool;
}

/* Returns true if the process was last alive more than ORPHAN_SECONDS ago. The last anchor tells, because the file's
 * times do not show stores to a mapping. */
static bool is_old(const struct stepscope_pool_header *header)
{
	return time(NULL) - header->last_anchor.realtime_ns / 1000000000 > ORPHAN_SECONDS;
}

enum status fold_pool(const char *pool_path, bool is_dead, struct fold_result *result, struct error *err)
{
	*result = (struct fold_result){0};
	int fd = open_pool(pool_path, is_dead);
	if (fd < 0 && errno == ENOENT && !is_dead) /* another rescue was faster */
		return STATUS_OK;
	if (fd < 0)
		return error_errno(err, STATUS_INPUT, errno, "cannot open the pool '%s'", pool_path);
	if (!lock_pool(fd) && !is_dead) {
		close(fd);
		return STATUS_OK;
	}
	struct stat info;
	if (fstat(fd, &info) == 0 && info.st_nlink == 0 && !is_dead) { /* another rescue was faster here too */
		close(fd);
		return STATUS_OK;
	}
	/* a program that closes all descriptors has lost the lock for a moment */
	struct stepscope_pool_header header;
	if (!is_dead && read_header(fd, &header) && is_in_use(&header, pool_path)) {
		close(fd);
		return STATUS_OK;
	}
	enum status status = fold_locked(fd, pool_path, result, err);
	/* A pool that could not be written stays for the next try. If its segment is not found, it may belong to a
	 * container that shares our /dev/shm, so that container's rescue gets time first. */
	bool is_useless = status == STATUS_OK ||
	                  (status == STATUS_INPUT && read_header(fd, &header) && is_old(&header));
	if (is_useless && strncmp(pool_path, "/dev/shm/", 9) == 0)
		unlink(pool_path);
	close(fd);
	return status;
}

static bool lies_in(char *segment, const char *directory)
{
	char found[PATH_MAX], wanted[PATH_MAX];
	char *slash = strrchr(segment, '/');
	if (!slash)
		return false;
	*slash = 0;
	bool is_inside = realpath(segment, found) && realpath(directory, wanted) && strcmp(found, wanted) == 0;
	*slash = '/';
	return is_inside;
}

/* Returns true if a `stepscope run` watches the directory: it holds a lock on it, rescues at once, and tells its user
 * the position of the process. This check also takes that lock for an instant, so a caller that must be sure tries more
 * than once. */
static bool is_watched(const char *directory, int tries)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is_locked = fd >= 0;
	while (is_locked && tries-- > 0) {
		is_locked = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
		if (is_locked && tries > 0)
			usleep(1000);
	}
	if (fd >= 0)
		close(fd);
	return is_locked;
}

static bool has_parent(char *segment)
{
	char *slash = strrchr(segment, '/');
	if (!slash)
		return false;
	*slash = 0;
	bool is_parent = is_watched(segment, 1);
	*slash = '/';
	return is_parent;
}

/* Returns true if the pool is to be rescued. Pools of runs whose directory is gone wait a while: they may belong to
 * another container. */
static bool is_candidate(const char *path, const char *run_directory)
{
	struct stepscope_pool_header header;
	if (!fold_peek(path, &header))
		return false;
	bool is_there = access(header.segment_path, F_OK) == 0;
	if (run_directory)
		return is_there && lies_in(header.segment_path, run_directory);
	return is_there ? !has_parent(header.segment_path) : is_old(&header);
}

/* Returns true if another rescue is working on the pool (not its living owner): the caller needs its events too. */
static bool is_being_rescued(const char *path)
{
	struct stepscope_pool_header header;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	int fd = open_pool(path, false);
	if (fd < 0)
		return false;
	bool is_locked = read_header(fd, &header) && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(fd);
	return is_locked && lock.l_pid > 0 && (uint32_t)lock.l_pid != header.identity.pid;
}

/* Folds a pool of a run that is to be read, or waits until another rescue has done so. */
static enum status fold_or_await(const char *path, int *ms_left, struct fold_result *result, struct error *err)
{
	for (;;) {
		enum status status = fold_pool(path, false, result, err);
		if (status != STATUS_OK || result->was_folded || *ms_left <= 0 || !is_being_rescued(path))
			return status;
		usleep(1000);
		--*ms_left;
	}
}

/* Returns true if "<pid>.<start time>[.k]" names our own pool. The start time matters because processes in containers
 * may have the same pid. */
static bool is_own_pool(const char *name)
{
	char *end;
	if (strtoull(name, &end, 10) != (unsigned long long)getpid())
		return false;
	uint64_t own_start = start_time_of((uint32_t)getpid());
	return !own_start || *end != '.' || strtoull(end + 1, NULL, 10) == own_start;
}

int fold_stale_pools(const char *run_directory, fold_problem *tell, void *context)
{
	int folded = 0, ms_left = run_directory ? RESCUE_MS : 0;
	char prefix[64], path[512];
	if (run_directory && is_watched(run_directory, PARENT_TRIES))
		return 0;
	DIR *dir = opendir("/dev/shm");
	if (!dir)
		return 0;
	snprintf(prefix, sizeof(prefix), "stepscope.%u.", (unsigned)getuid());
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		struct fold_result result;
		struct error err;
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		/* closing a descriptor of our own pool would drop the lock that shows that we live */
		if (is_own_pool(entry->d_name + strlen(prefix)))
			continue;
		snprintf(path, sizeof(path), "/dev/shm/%s", entry->d_name);
		if (!is_candidate(path, run_directory))
			continue;
		if (fold_or_await(path, &ms_left, &result, &err) == STATUS_OK)
			folded += result.was_folded;
		else if (tell)
			tell(context, &result, &err);
	}
	closedir(dir);
	return folded;
}
