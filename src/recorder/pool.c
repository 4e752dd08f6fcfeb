/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c: see pool.h. The file's lock is a POSIX record lock. The kernel drops it when the process dies or execs, it
 * works across pid namespaces, and forked children do not inherit it.
 */
#include "recorder/pool.h"

#include "base/file_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SMALLEST_POOL (256u << 10)
#define CHUNKS_AT_ONCE 16 /* chunks populated by a thread that cannot wait for the drainer */
#define FIRST_SYMBOLS_BYTES (64u << 10)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Returns the bytes that the pools of all processes may use in /dev/shm, and in *taken the bytes that they use now.
 * Avoids opendir(), which allocates. */
static uint64_t all_pools_bytes(uint64_t *taken)
{
	struct pool_entry { /* struct linux_dirent64 */
		uint64_t inode;
		int64_t offset;
		uint16_t bytes;
		uint8_t type;
		char name[];
	};
	char list[2048] __attribute__((aligned(8)));
	uint64_t sum = 0;
	long length;
	*taken = 0;
	int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while ((length = syscall(SYS_getdents64, fd, list, sizeof(list))) > 0)
		for (long at = 0; at < length;) {
			const struct pool_entry *entry = (const struct pool_entry *)(const void *)(list + at);
			struct stat info;
			if (strncmp(entry->name, "stepscope.", 10) == 0 &&
			    fstatat(fd, entry->name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
				*taken += (uint64_t)info.st_blocks * 512;
				sum += (uint64_t)info.st_size;
			}
			at += entry->bytes;
		}
	close(fd);
	return sum;
}

/* Returns the size of a pool in /dev/shm. All pools together may use a sixteenth of the room, because the program may
 * need the rest. */
static size_t allowed_shm_bytes(size_t wanted)
{
	struct statvfs info;
	if (statvfs("/dev/shm", &info) != 0)
		return 0;
	uint64_t taken, promised = all_pools_bytes(&taken);
	uint64_t allowed = ((uint64_t)info.f_bavail * info.f_frsize + taken) / 16;
	allowed = allowed > promised ? allowed - promised : 0;
	return wanted < allowed ? wanted : (size_t)allowed & ~(size_t)4095;
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

static uint32_t slot_count(size_t bytes)
{
	size_t count = bytes / STEPSCOPE_CHUNK_BYTES;
	return count < 32 ? 32 : count > 8192 ? 8192 : (uint32_t)count & ~15u; /* whole pages */
}

static uint64_t symbols_bytes(size_t bytes)
{
	return (bytes / 16) & ~(uint64_t)4095;
}

static uint64_t first_symbols_bytes(size_t bytes)
{
	uint64_t all = symbols_bytes(bytes);
	return all < FIRST_SYMBOLS_BYTES ? all : FIRST_SYMBOLS_BYTES;
}

static uint64_t symbols_offset(size_t bytes)
{
	return 4096 + (uint64_t)slot_count(bytes) * sizeof(struct stepscope_slot);
}

static uint64_t chunks_offset(size_t bytes)
{
	return (symbols_offset(bytes) + symbols_bytes(bytes) + 4095) & ~(uint64_t)4095;
}

/* ---- file -------------------------------------------------------------------------------------------------------- */

/* Reserves blocks of the file. For 16 MB this would take 6 ms, so only the part that the start needs gets blocks now.
 * pool_grow_symbols() and pool_populate() reserve the rest; they notice a full /dev/shm without a SIGBUS. This requires
 * Linux 5.14; older kernels reserve all blocks now. */
static bool pool_reserve(struct pool *pool, int fd, size_t bytes)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pool->is_lazy = page != MAP_FAILED && madvise(page, 4096, MADV_POPULATE_WRITE) == 0;
	if (page != MAP_FAILED)
		munmap(page, 4096);
	if (pool->is_lazy && ftruncate(fd, (off_t)bytes) != 0)
		return false;
	uint64_t first = symbols_offset(bytes) + first_symbols_bytes(bytes);
	return posix_fallocate(fd, 0, pool->is_lazy ? (off_t)first : (off_t)bytes) == 0;
}

static bool lock_file(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	return fcntl(fd, F_SETLK, &lock) == 0;
}

static int write_path(char *path, size_t bytes, unsigned pid, uint64_t start_time)
{
	return snprintf(path, bytes, "/dev/shm/stepscope.%u.%u.%" PRIu64, (unsigned)getuid(), pid, start_time);
}

static bool open_shm(struct pool *pool, size_t bytes, unsigned pid, uint64_t start_time)
{
	/* a number after the name: after an exec, the pool of the previous image stays for the rescue */
	for (int n = 0; n < 100; n++) {
		int length = write_path(pool->path, sizeof(pool->path), pid, start_time);
		if (n > 0)
			snprintf(pool->path + length, sizeof(pool->path) - (size_t)length, ".%d", n);
		int fd = open(pool->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return false;
		own_fd_take(&pool->file, fd); /* before the lock, because closing the first descriptor would drop it */
		fd = pool->file.fd;
		struct stat info;
		/* a rescue that found the file before it was locked may have removed it */
		if (!lock_file(fd) || fstat(fd, &info) != 0 || info.st_nlink == 0 || !pool_reserve(pool, fd, bytes)) {
			unlink(pool->path);
			own_fd_close(&pool->file);
			return false;
		}
		return true;
	}
	return false;
}

static bool open_memfd(struct pool *pool, size_t bytes, unsigned pid)
{
	char name[64];
	snprintf(name, sizeof(name), "stepscope.pool.%u", pid);
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return false;
	own_fd_take(&pool->file, fd);
	fd = pool->file.fd;
	if (!pool_reserve(pool, fd, bytes) || !lock_file(fd)) {
		own_fd_close(&pool->file);
		return false;
	}
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK); /* no process can turn our stores into a SIGBUS */
	return true;
}

static void *map_pool(struct pool *pool, size_t wanted, unsigned pid, uint64_t start_time)
{
	struct file_limit limit;
	void *memory = MAP_FAILED;
	file_limit_enter(&limit);
	pool->bytes = allowed_shm_bytes(wanted);
	pool->kind = POOL_SHM;
	bool is_open = pool->bytes >= SMALLEST_POOL && open_shm(pool, pool->bytes, pid, start_time);
	if (!is_open) {
		pool->path[0] = 0;
		pool->bytes = wanted;
		pool->kind = POOL_MEMFD;
		is_open = open_memfd(pool, wanted, pid);
	}
	file_limit_leave(&limit);
	if (is_open)
		memory = mmap(NULL, pool->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, pool->file.fd, 0);
	if (memory == MAP_FAILED) {
		pool_destroy(pool, false);
		pool->bytes = wanted;
		pool->kind = POOL_ANONYMOUS;
		pool->is_lazy = false;
		memory = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	return memory == MAP_FAILED ? NULL : memory;
}

/* Returns the size of the pool under the limit on file sizes. A smaller pool in a file survives the process, a pool
 * without a file does not. */
static size_t within_file_limit(size_t wanted)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= wanted || limit.rlim_cur < SMALLEST_POOL)
		return wanted;
	return limit.rlim_cur;
}

bool pool_create(struct pool *pool, size_t bytes, unsigned pid, uint64_t start_time)
{
	*pool = (struct pool){.file.fd = -1};
	size_t wanted = within_file_limit(bytes < SMALLEST_POOL ? SMALLEST_POOL : bytes) & ~(size_t)4095;
	uint8_t *memory = map_pool(pool, wanted, pid, start_time);
	if (!memory) {
		pool->kind = POOL_NONE;
		return false;
	}
	madvise(memory, pool->bytes, MADV_DONTFORK); /* a child must not write into its parent's pool */
	struct stepscope_pool_header *header = (struct stepscope_pool_header *)memory;
	madvise(memory, 4096, MADV_POPULATE_WRITE);
	header->header_bytes = 4096;
	header->slot_count = slot_count(pool->bytes);
	header->pool_bytes = pool->bytes;
	header->slots_offset = 4096;
	header->symbols_offset = symbols_offset(pool->bytes);
	header->symbols_bytes = pool->is_lazy ? first_symbols_bytes(pool->bytes) : symbols_bytes(pool->bytes);
	header->chunks_offset = chunks_offset(pool->bytes);
	header->chunk_count = (uint32_t)((pool->bytes - header->chunks_offset) / sizeof(struct stepscope_chunk));
	pool->header = header;
	pool->slots = (struct stepscope_slot *)(memory + header->slots_offset);
	pool->symbols = memory + header->symbols_offset;
	pool->chunks = (struct stepscope_chunk *)(memory + header->chunks_offset);
	memcpy(header->magic, STEPSCOPE_POOL_MAGIC, 8);
	return true;
}

void pool_mend(struct pool *pool)
{
	if (pool->kind != POOL_SHM)
		return; /* a memfd has no path: `stepscope run` holds it */
	if (!own_fd_is_ours(&pool->file))
		pool->is_unlocked = own_fd_reopen(&pool->file, pool->path, O_RDWR);
	if (pool->is_unlocked)
		pool->is_unlocked = !lock_file(pool->file.fd);
}

void pool_destroy(struct pool *pool, bool is_unmapping)
{
	if (pool->kind == POOL_SHM && pool->path[0])
		unlink(pool->path);
	own_fd_close(&pool->file);
	pool_abandon(pool, is_unmapping);
}

void pool_abandon(struct pool *pool, bool is_unmapping)
{
	pool->kind = POOL_NONE;
	pool->file.fd = -1;
	if (!is_unmapping || !pool->header)
		return; /* a thread may still use the pool, so it stays mapped */
	munmap(pool->header, pool->bytes);
	*pool = (struct pool){.file.fd = -1};
}

const char *pool_kind_text(enum pool_kind kind)
{
	switch (kind) {
	case POOL_SHM:
		return "shm";
	case POOL_MEMFD:
		return "memfd";
	case POOL_ANONYMOUS:
		return "anonymous";
	default:
		return "none";
	}
}

void pool_grow_symbols(struct pool *pool)
{
	uint64_t all = symbols_bytes(pool->bytes), first = pool->header->symbols_bytes;
	int problem = errno;
	if (first < all && madvise(pool->symbols + first, all - first, MADV_POPULATE_WRITE) == 0)
		__atomic_store_n(&pool->header->symbols_bytes, all, __ATOMIC_RELEASE);
	errno = problem;
}

void pool_populate(struct pool *pool, uint32_t chunks)
{
	uint32_t from = __atomic_load_n(&pool->populated, __ATOMIC_ACQUIRE);
	uint32_t left = pool->header->chunk_count - from;
	if (chunks > left)
		chunks = left;
	if (chunks == 0 || __atomic_load_n(&pool->is_full, __ATOMIC_RELAXED))
		return;
	uint8_t *pages = (uint8_t *)&pool->chunks[from];
	size_t bytes = (size_t)chunks * sizeof(struct stepscope_chunk);
	int problem = errno; /* an event must not change errno */
	bool is_done = madvise(pages, bytes, MADV_POPULATE_WRITE) == 0;
	bool is_interrupted = !is_done && (errno == EINTR || errno == EAGAIN);
	errno = problem;
	if (!is_done && pool->is_lazy) {
		if (!is_interrupted)
			__atomic_store_n(&pool->is_full, true, __ATOMIC_RELAXED);
		return;
	}
	if (!is_done) {
		/* older kernels: reading maps pages of shared memory too, and cannot disturb a chunk that is in use */
		for (size_t at = 0; at < bytes; at += 4096)
			(void)*(volatile uint8_t *)(pages + at);
	}
	/* another thread may have got further meanwhile */
	__atomic_compare_exchange_n(&pool->populated, &from, from + chunks, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

bool pool_is_populated(const struct pool *pool)
{
	return __atomic_load_n(&pool->populated, __ATOMIC_RELAXED) >= pool->header->chunk_count ||
	       __atomic_load_n(&pool->is_full, __ATOMIC_RELAXED);
}

/* Returns true if the chunk has memory. Populates more chunks if necessary. */
static bool has_memory(struct pool *pool, uint32_t chunk)
{
	if (!pool->is_lazy || chunk < __atomic_load_n(&pool->populated, __ATOMIC_ACQUIRE))
		return true;
	pool_populate(pool, CHUNKS_AT_ONCE);
	return chunk < __atomic_load_n(&pool->populated, __ATOMIC_ACQUIRE);
}

/* free_list: index + 1 of the first chunk in the low half, a count of pops in the high half against ABA. */
static struct stepscope_chunk *pool_pop_entry(struct pool *pool)
{
	uint64_t *list = &pool->header->free_list;
	uint64_t head = __atomic_load_n(list, __ATOMIC_ACQUIRE);
	while ((uint32_t)head) {
		struct stepscope_chunk *chunk = &pool->chunks[(uint32_t)head - 1];
		uint32_t next = __atomic_load_n(&chunk->next, __ATOMIC_RELAXED);
		uint64_t taken = ((head >> 32) + 1) << 32 | next;
		if (__atomic_compare_exchange_n(list, &head, taken, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&chunk->next, 0, __ATOMIC_RELAXED);
			return chunk;
		}
	}
	uint32_t fresh = __atomic_load_n(&pool->fresh, __ATOMIC_RELAXED);
	while (fresh < pool->header->chunk_count && has_memory(pool, fresh))
		if (__atomic_compare_exchange_n(&pool->fresh, &fresh, fresh + 1, true, __ATOMIC_ACQ_REL,
		                                __ATOMIC_RELAXED))
			return &pool->chunks[fresh];
	return NULL;
}

struct stepscope_chunk *pool_pop(struct pool *pool)
{
	struct stepscope_chunk *chunk = pool_pop_entry(pool);
	if (chunk)
		__atomic_fetch_add(&pool->taken, 1, __ATOMIC_RELAXED);
	return chunk;
}

struct stepscope_chunk *pool_pop_above(struct pool *pool, uint32_t reserve)
{
	if (__atomic_load_n(&pool->taken, __ATOMIC_RELAXED) + reserve >= pool->header->chunk_count)
		return NULL;
	return pool_pop(pool);
}

void pool_push(struct pool *pool, struct stepscope_chunk *chunk)
{
	/* clear the magic first: the events are already in the file, and a rescue must skip a chunk that is half
	 * zeroed */
	__atomic_store_n(&chunk->magic, 0, __ATOMIC_RELEASE);
	memset(&chunk->stream, 0, sizeof(*chunk) - offsetof(struct stepscope_chunk, stream));
	uint64_t *list = &pool->header->free_list;
	uint64_t head = __atomic_load_n(list, __ATOMIC_RELAXED);
	uint64_t mine;
	do {
		__atomic_store_n(&chunk->next, (uint32_t)head, __ATOMIC_RELAXED);
		mine = (head >> 32) << 32 | (pool_chunk_index(pool, chunk) + 1);
	} while (!__atomic_compare_exchange_n(list, &head, mine, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	__atomic_fetch_sub(&pool->taken, 1, __ATOMIC_RELAXED);
}

/* Returns true if this process may have a pool, in /dev/shm or as a memfd with one of our descriptors. */
static bool pool_may_exist(unsigned pid, uint64_t start_time)
{
	char path[128];
	int length = write_path(path, sizeof(path) - 2, pid, start_time);
	bool is_there = access(path, F_OK) == 0;
	memcpy(path + length, ".1", 3); /* suffix of a pool that was created after an exec */
	return is_there || access(path, F_OK) == 0 || own_fd_was_taken();
}

bool pool_exists_in_process(unsigned pid, uint64_t start_time)
{
	char shm[64], memfd[64], text[2048 + 1];
	size_t kept = 0;
	bool is_found = false;
	if (!pool_may_exist(pid, start_time))
		return false; /* reading the mappings of a large program takes half a millisecond */
	snprintf(shm, sizeof(shm), "/dev/shm/stepscope.%u.%u.", (unsigned)getuid(), pid);
	snprintf(memfd, sizeof(memfd), "memfd:stepscope.pool.%u ", pid);
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	for (;;) {
		ssize_t n = read(fd, text + kept, sizeof(text) - 1 - kept);
		if (n <= 0)
			break;
		size_t length = kept + (size_t)n;
		text[length] = 0;
		if (strstr(text, shm) || strstr(text, memfd)) {
			is_found = true;
			break;
		}
		kept = length < 128 ? length : 128; /* a name may span two reads */
		memmove(text, text + length - kept, kept);
	}
	close(fd);
	return is_found;
}
