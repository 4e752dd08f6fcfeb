/* SPDX-License-Identifier: Apache-2.0
 *
 * format.h: binary format of a recording: event words, the pool in shared memory, and the segment file. Little-endian.
 * docs/file-format.md explains how a reader uses them; this header is the reference for sizes and numbers.
 *
 *   training thread ──words──> pool (chunks in /dev/shm) ──drainer──> segment file <host>.<pid>.<starttime>.<n>.ssr
 *
 * AN EVENT is one head word and 0..15 payload words of 8 bytes, in the pool:
 *
 *    63            40 39   36 35  32 31                    0
 *   +----------------+-------+------+-----------------------+
 *   |  id (24 bits)  |  n    | type |  low 32 bits of tick  |   head word; n = payload words that follow
 *   +----------------+-------+------+-----------------------+
 *   |                     payload word 1                    |   stored BEFORE the head word, so a head word that is
 *   |                          ...                          |   not zero is followed by a complete payload
 *   |                     payload word n                    |
 *   +-------------------------------------------------------+
 *
 * A zero head word ends a chunk. Ticks are those of the segment's clock (enum stepscope_clock). The high half of a tick
 * comes from the chunk's base_tick. A head whose low half is smaller than its predecessor's has not wrapped: the writer
 * puts a TIME event before the first event that is 2^32 ticks or more after the base.
 */
#ifndef STEPSCOPE_FORMAT_H
#define STEPSCOPE_FORMAT_H

#include <assert.h>
#include <stdint.h>

/* ---- events ------------------------------------------------------------------------------------------------------ */

enum stepscope_event {
	STEPSCOPE_EVENT_NONE = 0,
	STEPSCOPE_EVENT_BEGIN = 1, /* id: symbol (its kind: range, phase, op, ...); optional STEPSCOPE_BEGIN_ words */
	STEPSCOPE_EVENT_END = 2,   /* id: enum stepscope_end */
	STEPSCOPE_EVENT_SWITCH =
		3, /* id: symbol; END of the innermost open span of the same class, then BEGIN, at one tick */
	STEPSCOPE_EVENT_MARK = 4,  /* id: symbol */
	STEPSCOPE_EVENT_VALUE = 5, /* id: symbol (counter or metric); [0] value, f64 bits; optional [1] track */
	STEPSCOPE_EVENT_ALLOC = 6, /* id: memory id, see below; [0] address [1] bytes */
	STEPSCOPE_EVENT_FREE = 7,  /* id: memory id without category; [0] address, optional [1] bytes */
	STEPSCOPE_EVENT_STEP = 8,  /* id: enum stepscope_step_event, which lists the payload */
	/* id: symbol; complete span: [0] track (0: this stream) [1] start tick [2] duration in ticks */
	STEPSCOPE_EVENT_SPAN = 9,
	/* id: enum stepscope_link * 2 + (1: incoming); [0] link number; belongs to the event before */
	STEPSCOPE_EVENT_LINK = 10,
	/* id: symbol of the sampled quantity; [0] stack number [1] weight [2] track (0: this stream) */
	STEPSCOPE_EVENT_SAMPLE = 11,
	/* id: symbol of the key; [0] enum stepscope_arg [1] value; belongs to the event before */
	STEPSCOPE_EVENT_ARG = 12,
	/* id 0; [0] events dropped here [1] net depth change (i32) << 32 | lowest depth (u32 of i32) [2] tick of
	 * the first dropped event */
	STEPSCOPE_EVENT_GAP = 13,
	/* id 0; [0] full tick of this head, the new base of the low halves */
	STEPSCOPE_EVENT_TIME = 14,
	/* id: enum stepscope_extended; a reader skips unknown kinds by length */
	STEPSCOPE_EVENT_EXTENDED = 15,
	STEPSCOPE_EVENT_TYPES = 16,
};

/* Payload words of BEGIN events. Trailing words without information are left out. */
enum stepscope_begin {
	/* autograd sequence number in bits 0..47 (all ones in the word: none); in bits 48..63 PyTorch's
	 * number of the thread that ran the forward (0: not backward) */
	STEPSCOPE_BEGIN_SEQUENCE = 0,
	/* symbol of the inputs (kind INPUTS) in bits 0..31, symbol of the innermost Python frame (kind FRAME) in
	 * 32..63; 0: none */
	STEPSCOPE_BEGIN_WHERE = 1,
};
#define STEPSCOPE_NO_SEQUENCE UINT64_MAX

enum stepscope_extended {
	/* Comes before the first operator of a stream and before its first operator in each window. [0] PyTorch's
	 * number of this stream's thread. Optional [1] 1: a profiler in the program follows the thread, 0: it does
	 * not. */
	STEPSCOPE_EXTENDED_TORCH_THREAD = 1,
	/* The owner of an allocation at this moment: [0] address [1] memory id as in an ALLOC [2] bytes, 0: unknown.
	 * The category "input" is only a hint, used if no other category is known. */
	STEPSCOPE_EXTENDED_MEMORY_OWNER = 2,
	/* Written by a rescue after all events of the stream: [0] symbol of the call that the thread was in while no
	 * operators were recorded */
	STEPSCOPE_EXTENDED_CALL = 3,
};

enum stepscope_end { /* an END without an open span is ignored; END_PHASE also closes every span opened after it */
	/* Innermost range, op, ...; an open phase, micro-batch or step that began in it continues. Optional pairs of
	 * words, each an argument of the span that ends: symbol of the key | enum stepscope_arg << 32, and the value. */
	STEPSCOPE_END_DETAIL = 0,
	STEPSCOPE_END_PHASE = 1, /* innermost phase or micro-batch */
	/* A range, op, ... that is not the innermost. [0] number of spans begun in it that go on, without steps, phases
	 * and micro-batches (0: none). Optional [1] tick when it ended, if earlier than this event. */
	STEPSCOPE_END_BENEATH = 2,
};

enum stepscope_step_event {
	STEPSCOPE_STEP_BEGIN = 0, /* [0] number (i64) */
	/* [0] number. Optional [1] 1: the step was cut short and is not complete. Optional, of the step's thread: [2]
	 * CPU time since the start of the step, ns, [3] number of times it stopped to wait, [4] (may be missing) page
	 * faults that read from no disk. */
	STEPSCOPE_STEP_END = 1,
	STEPSCOPE_STEP_TOKENS = 2,  /* [0] tokens to add to the open step */
	STEPSCOPE_STEP_SAMPLES = 3, /* [0] samples to add to the open step */
	/* [0] enum stepscope_capture, for the process from here on. [1] mask of stepscope_active bits. Optional [2]
	 * number of the step that starts here, if the program marks no steps and the recorder counts them. */
	STEPSCOPE_STEP_CAPTURE = 4,
	STEPSCOPE_STEP_RESULT = 5, /* reserved for optimizer results (skipped step) */
	/* A window of a profiler in the program: [0] number of the window, from 1 [1] 1: it starts, 0: it ends */
	STEPSCOPE_STEP_WINDOW = 6,
	/* PyTorch activity while no detail is recorded. [0] enum stepscope_training in bits 0..7, flags from bit 8. [1]
	 * start tick. [2] end tick. Optional [3] the optimizer. For operators instead: [3] the called module, as in the
	 * argument "torch.module", [4] the symbol of its name. */
	STEPSCOPE_STEP_TRAINING = 7,
	/* [0] number of steps that have ended, as counted so far, if the program marks none */
	STEPSCOPE_STEP_COUNTED = 8,
	/* A reading of the thread's totals since its start: [0] CPU time, ns [1] time that it waited for a
	 * processor, ns, or STEPSCOPE_USE_UNKNOWN. Optional [2] CPU time of the process, ns. */
	STEPSCOPE_STEP_USE = 9,
};
#define STEPSCOPE_USE_UNKNOWN UINT64_MAX

enum stepscope_training {               /* kind of a stretch of a thread's time, from which readers infer steps */
	STEPSCOPE_TRAINING_OP = 0,      /* operators outside any autograd graph */
	STEPSCOPE_TRAINING_FORWARD = 1, /* operators recorded in an autograd graph */
	STEPSCOPE_TRAINING_DATA = 2,    /* waiting for a batch */
	STEPSCOPE_TRAINING_BACKWARD = 3,
	STEPSCOPE_TRAINING_OPTIMIZER = 4, /* one optimizer call */
	STEPSCOPE_TRAINING_ZERO_GRAD = 5,
	STEPSCOPE_TRAINING_SCALER = 6,      /* update of a gradient scaler */
	STEPSCOPE_TRAINING_SAVE = 7,        /* torch.save */
	STEPSCOPE_TRAINING_LOADER = 8,      /* starting the workers of a data loader */
	STEPSCOPE_TRAINING_HOOKED = 9,      /* an optimizer call inside the backward whose event comes next */
	STEPSCOPE_TRAINING_LOADER_END = 10, /* waiting until the workers have ended */
	/* From one step() call of a profiler in the program to the next, after the stretches inside it; [3] is 1 + its
	 * number. */
	STEPSCOPE_TRAINING_PROFILER_STEP = 11,
	STEPSCOPE_TRAINING_IS_TRAINING = 1 << 8, /* backward: gradients were accumulated */
	STEPSCOPE_TRAINING_IS_INSIDE = 1 << 9,   /* inside an optimizer call */
	STEPSCOPE_TRAINING_IS_EMPTY = 1 << 10,   /* data: no batch arrived */
};

enum stepscope_capture {            /* recording state of a schedule */
	STEPSCOPE_CAPTURE_NONE = 0, /* steps, phases and counters only */
	STEPSCOPE_CAPTURE_WARMUP = 1,
	STEPSCOPE_CAPTURE_RECORD = 2,
	STEPSCOPE_CAPTURE_SAVE = 3, /* recorded, and the last step of its cycle */
};

enum stepscope_link {
	STEPSCOPE_LINK_LAUNCH = 0,
	STEPSCOPE_LINK_BACKWARD = 1,
	STEPSCOPE_LINK_OTHER = 2
};

enum stepscope_arg { /* type of an ARG's value word */
	STEPSCOPE_ARG_I64 = 0,
	STEPSCOPE_ARG_U64 = 1,
	STEPSCOPE_ARG_F64 = 2,
	STEPSCOPE_ARG_SYMBOL = 3, /* low 32 bits: a symbol of kind text */
	STEPSCOPE_ARG_BOOL = 4,
	STEPSCOPE_ARG_POINTER = 5,
};

/* Parts of the argument "torch.optimizer" and of word [3] of a TRAINING event. Bits 0..47: address of the optimizer.
 * Bits 48..62: number of the object among those that had this address. Bit 63: set if the optimizer was created since
 * the thread's previous optimizer call. */
#define STEPSCOPE_OPTIMIZER_ADDRESS 0xffffffffffffull
#define STEPSCOPE_OPTIMIZER_IS_NEW (1ull << 63)

/* Bit 0 of the argument "torch.module"; the bits above identify the called module. */
#define STEPSCOPE_MODULE_TRAINS 1u

/* memory id: category in bits 0..7, device + 1 in bits 8..23 (host memory: 0) */
#define STEPSCOPE_MEMORY_ID(category, device) ((uint32_t)(category) | (uint32_t)((device) + 1) << 8)
#define STEPSCOPE_MEMORY_UNKNOWN 255u /* category unknown to the writer; readers infer it */

/* ---- symbols: names with a kind ---------------------------------------------------------------------------------- */

enum stepscope_symbol_kind {       /* the first numbers are those of enum stepscope_kind */
	STEPSCOPE_SYMBOL_TEXT = 0, /* keys, shapes, any text that does not name an event */
	STEPSCOPE_SYMBOL_RANGE = 1,
	STEPSCOPE_SYMBOL_PHASE = 2,
	STEPSCOPE_SYMBOL_OP = 3,
	STEPSCOPE_SYMBOL_COUNTER = 4,
	STEPSCOPE_SYMBOL_MARK = 5,
	STEPSCOPE_SYMBOL_METRIC = 6,
	STEPSCOPE_SYMBOL_MICRO_BATCH = 7,
	STEPSCOPE_SYMBOL_ANNOTATION = 8, /* user_annotation of imported traces */
	STEPSCOPE_SYMBOL_PYTHON = 9,
	STEPSCOPE_SYMBOL_RUNTIME = 10, /* call of a device runtime or driver */
	STEPSCOPE_SYMBOL_KERNEL = 11,
	STEPSCOPE_SYMBOL_MEMCPY = 12,
	STEPSCOPE_SYMBOL_MEMSET = 13,
	STEPSCOPE_SYMBOL_SYNC = 14,
	STEPSCOPE_SYMBOL_COLLECTIVE = 15,
	STEPSCOPE_SYMBOL_OVERHEAD = 16,
	STEPSCOPE_SYMBOL_FRAME = 17,
	STEPSCOPE_SYMBOL_SAMPLE = 18,
	STEPSCOPE_SYMBOL_OTHER = 19,
	STEPSCOPE_SYMBOL_META = 20,     /* "key NUL value"; a MARK of it is a fact (meta of the segment reader) */
	STEPSCOPE_SYMBOL_BACKWARD = 21, /* a node of an autograd graph */
	STEPSCOPE_SYMBOL_SCRIPT = 22,   /* a TorchScript function */
	STEPSCOPE_SYMBOL_MODULE = 23,   /* a call of the forward of an nn.Module */
	STEPSCOPE_SYMBOL_INPUTS = 24,   /* inputs of an operator, see docs/file-format.md */
};

/* Symbols with fixed numbers, present in every recording and written like all others; 0 means no symbol. */
enum stepscope_builtin {
	STEPSCOPE_BUILTIN_PHASE_DATA = 1, /* 1..7: phases, numbered as enum stepscope_phase */
	STEPSCOPE_BUILTIN_PHASE_EVALUATION = 7,
	STEPSCOPE_BUILTIN_MICRO_BATCH = 8,
	STEPSCOPE_BUILTIN_KEY_INDEX = 9,
	STEPSCOPE_BUILTIN_KEY_SHAPE = 10,
	STEPSCOPE_BUILTIN_KEY_DTYPE = 11,
	STEPSCOPE_BUILTIN_KEY_FLOPS = 12,
	STEPSCOPE_BUILTIN_KEY_BYTES = 13,
	STEPSCOPE_BUILTIN_FIRST_FREE = 16,
};

/* A symbol in the pool's symbol area and in SYMBOLS blocks; the next one follows at the next multiple of 8 bytes. */
struct stepscope_symbol {
	uint32_t id;     /* 1..2^24-1; stored last (release), so 0 means "not complete yet" */
	uint16_t length; /* bytes of text that follow, without terminator */
	uint8_t kind;    /* enum stepscope_symbol_kind */
	uint8_t flags;   /* 0 */
};
static_assert(sizeof(struct stepscope_symbol) == 8, "symbol head");

/* ---- segment file ---------------------------------------------------------------------------------------------------
 *
 *   +-------------+-------------------------+-------------------------+----
 *   | header 128B | block header 64B | data | block header 64B | data | ...      append-only, no footer
 *   +-------------+-------------------------+-------------------------+----
 */

#define STEPSCOPE_SEGMENT_MAGIC "SSEG0001"
#define STEPSCOPE_BLOCK_MAGIC 0x4b4c4253u /* "SBLK" */

enum stepscope_clock {
	STEPSCOPE_CLOCK_TSC = 1,         /* x86 time stamp counter */
	STEPSCOPE_CLOCK_CNTVCT = 2,      /* aarch64 virtual counter */
	STEPSCOPE_CLOCK_MONOTONIC = 3,   /* clock_gettime(CLOCK_MONOTONIC_RAW) in ns */
	STEPSCOPE_CLOCK_NANOSECONDS = 4, /* ns since the origin in META "clock.origin_ns" (converted traces) */
};

enum stepscope_segment_flag {
	/* Holds a copy of the process's coarse events (steps, phases, micro-batches, values, marks) and is never
	 * removed by rotation. A reader takes from it the events that are older than the oldest remaining other segment
	 * of the session. */
	STEPSCOPE_SEGMENT_COARSE = 1,
	/* Written by `stepscope convert`: ROWS blocks instead of events. */
	STEPSCOPE_SEGMENT_CONVERTED = 2,
};

enum stepscope_role {
	STEPSCOPE_ROLE_TRAINER = 0,
	STEPSCOPE_ROLE_WORKER = 1, /* forked child of a trainer */
	STEPSCOPE_ROLE_LAUNCHER = 2,
	STEPSCOPE_ROLE_HOST = 3, /* telemetry of the machine, written by `stepscope run` */
	STEPSCOPE_ROLE_IMPORTED = 4,
};

struct stepscope_segment_header {
	char magic[8];
	uint32_t header_bytes; /* 128; blocks start here */
	uint32_t crc;          /* CRC-32C of the header with this field 0 */
	uint32_t pid;
	uint32_t segment;    /* n of the file name */
	uint64_t start_time; /* start of the process: field 22 of /proc/PID/stat, clock ticks since boot */
	uint8_t boot_id[16];
	uint8_t run_id[16];
	uint32_t clock;     /* enum stepscope_clock */
	uint32_t role;      /* enum stepscope_role */
	int32_t rank;       /* -1: unknown */
	int32_t world_size; /* -1: unknown */
	uint64_t tick_hz;   /* nominal; CLOCK blocks give the real rate */
	uint32_t tick_step; /* smallest difference between two reads, in ticks */
	uint32_t parent_pid;
	uint64_t first_tick;
	uint32_t flags; /* enum stepscope_segment_flag */
	/* Segments with equal pid, start_time and session share symbols and streams; an exec starts a new session. */
	uint32_t session;
	uint64_t pid_namespace; /* namespace of pid and parent_pid: inode number of /proc/PID/ns/pid; 0: unknown */
	uint8_t reserved[8];
};
static_assert(sizeof(struct stepscope_segment_header) == 128, "segment header");

enum stepscope_block_kind {          /* a reader skips unknown kinds by length */
	STEPSCOPE_BLOCK_EVENTS = 1,  /* columns, drawn in src/format/block.h */
	STEPSCOPE_BLOCK_SYMBOLS = 2, /* struct stepscope_symbol + text, 8-byte aligned, back to back */
	STEPSCOPE_BLOCK_STREAM = 3,  /* struct stepscope_stream_info + name: describes block.stream */
	STEPSCOPE_BLOCK_CLOCK = 4,   /* struct stepscope_anchor, one or more */
	STEPSCOPE_BLOCK_META = 5,    /* key NUL value NUL, repeated; a later value of a key wins */
	STEPSCOPE_BLOCK_DROPS = 6,   /* struct stepscope_drops: totals so far of block.stream; the last block wins */
	STEPSCOPE_BLOCK_STACKS = 7,  /* struct stepscope_stack_node, one or more */
	STEPSCOPE_BLOCK_TRACK = 8,   /* struct stepscope_track_info + name */
	STEPSCOPE_BLOCK_END = 10,    /* reason as text: the process closed this recording; absent after a kill */
	/* struct stepscope_rows, one byte per field with its width, then the fields column by column */
	STEPSCOPE_BLOCK_ROWS = 11,
};

enum stepscope_encoding {
	STEPSCOPE_ENCODING_RAW = 0,
	STEPSCOPE_ENCODING_LZ4 = 1
};

enum stepscope_block_flag {
	STEPSCOPE_BLOCK_RESCUED = 1, /* written by the rescue, not by the process */
	/* EVENTS: words of BEGIN events are packed in a special way, see src/format/payload.h */
	STEPSCOPE_BLOCK_BEGIN_WORDS = 2,
};

struct stepscope_block {
	uint32_t magic;
	uint32_t bytes;      /* bytes of data that follow */
	uint32_t crc;        /* CRC-32C of header (this field 0) and data */
	uint8_t kind;        /* enum stepscope_block_kind */
	uint8_t encoding;    /* enum stepscope_encoding */
	uint8_t shift;       /* EVENTS: ticks were divided by 2^shift */
	uint8_t flags;       /* enum stepscope_block_flag */
	uint32_t stream;     /* number of the thread's stream; 0: the process */
	uint32_t raw_bytes;  /* bytes of data after decompression */
	uint64_t first_word; /* EVENTS: position of the first word, in words since the stream's start */
	uint32_t words;      /* EVENTS: the block covers words [first_word, first_word + words) of the stream */
	uint32_t events;
	uint64_t first_tick;
	uint64_t last_tick;
	uint64_t rescue; /* RESCUED: the pool it came from (tick of its first anchor); otherwise 0 */
};
static_assert(sizeof(struct stepscope_block) == 64, "block header");

#define STEPSCOPE_MAX_BLOCK_BYTES (16u << 20) /* a reader rejects larger `bytes` or `raw_bytes` */

enum stepscope_stream_kind {
	STEPSCOPE_STREAM_THREAD = 0,
	STEPSCOPE_STREAM_SIGNAL = 1, /* events of signal handlers that interrupted the recorder in thread tid */
	STEPSCOPE_STREAM_SELF = 2,   /* the recorder's thread: values of the process once a second */
	STEPSCOPE_STREAM_IMPORTED = 3,
};

struct stepscope_stream_info {
	uint32_t kind; /* enum stepscope_stream_kind */
	uint32_t tid;
	uint32_t flags;      /* 1: main thread; 2: the thread has ended and its last event is its end */
	uint32_t name_bytes; /* bytes of UTF-8 that follow */
};
static_assert(sizeof(struct stepscope_stream_info) == 16, "stream info");

struct stepscope_track_info { /* a timeline row that is not a recorded thread: device stream, queue */
	uint32_t track;       /* 1.. */
	uint32_t kind;        /* 0 other, 1 thread, 2 device stream */
	int32_t device;       /* -1: none */
	int32_t stream;       /* device stream or thread id */
	uint32_t process;     /* pid of the row's process */
	uint32_t name_bytes;
};
static_assert(sizeof(struct stepscope_track_info) == 24, "track info");

struct stepscope_anchor { /* the clocks at one instant; readers interpolate between anchors */
	uint64_t tick;
	int64_t raw_ns;        /* CLOCK_MONOTONIC_RAW */
	int64_t monotonic_ns;  /* CLOCK_MONOTONIC */
	int64_t realtime_ns;   /* CLOCK_REALTIME */
	uint32_t window_ticks; /* uncertainty of the reading */
	uint32_t clock;        /* enum stepscope_clock in use from here on */
};
static_assert(sizeof(struct stepscope_anchor) == 40, "anchor");

struct stepscope_rows {  /* rows of a table of a converted recording */
	uint16_t table;  /* enum model_table_number in src/model/model_tables.h */
	uint16_t fields; /* of each row */
	uint32_t owner;  /* number of the track or series that the rows belong to */
	uint32_t first; /* number of the first row: among all strings of the file, otherwise in its part of the table */
	uint32_t rows;
};
static_assert(sizeof(struct stepscope_rows) == 16, "rows");

struct stepscope_drops {
	uint64_t by_type[STEPSCOPE_EVENT_TYPES]; /* events dropped, indexed by enum stepscope_event */
};

struct stepscope_stack_node { /* a stack is named by its innermost node; `parent` is the caller (0: root) */
	uint32_t node;
	uint32_t parent;
	uint32_t frame; /* symbol of kind frame */
	uint32_t line;  /* 0: unknown */
};

/* ---- pool: a file /dev/shm/stepscope.<uid>.<pid>.<starttime> (or a memfd), mode 0600 --------------------------------
 *
 *   +----------------+--------------+---------+-----------------------------+
 *   | header 4096 B  | stream slots | symbols | chunks of 8 KiB             |
 *   +----------------+--------------+---------+-----------------------------+
 *
 * After a kill, the pool completes the segment: from every chunk that has the magic, the rescue takes the words of
 * [first_word, ...) that no EVENTS block of the stream covers. Free chunks are all zero.
 */
#define STEPSCOPE_POOL_MAGIC "SPOL0001"
#define STEPSCOPE_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */
#define STEPSCOPE_CHUNK_BYTES 8192u

struct stepscope_pool_header {
	char magic[8];
	uint32_t header_bytes; /* 4096 */
	uint32_t slot_count;
	uint64_t pool_bytes;
	uint64_t slots_offset;
	uint64_t symbols_offset;
	uint64_t symbols_bytes; /* capacity */
	uint64_t chunks_offset;
	uint32_t chunk_count;
	uint32_t is_closed;    /* 1: the segment holds everything; nothing to rescue */
	uint64_t symbols_used; /* bytes, atomic */
	uint64_t free_list;    /* used by the recorder only; the rescue ignores it */
	uint32_t shift;        /* the drainer divides ticks by 2^shift */
	uint32_t reserved;
	uint64_t dropped[STEPSCOPE_EVENT_TYPES];  /* dropped events of threads without a slot, by type, atomic */
	struct stepscope_segment_header identity; /* header of the segment being written */
	struct stepscope_anchor first_anchor, last_anchor;
	char segment_path[1400]; /* NUL-terminated absolute path of the segment being written */
};
static_assert(sizeof(struct stepscope_pool_header) <= 4096, "pool header");

struct stepscope_slot {  /* one per live thread, and one more per thread that a signal handler interrupted */
	uint32_t stream; /* 0: free; 2^32-1: being taken */
	uint32_t tid;
	uint32_t kind;                           /* enum stepscope_stream_kind */
	uint32_t is_exited;                      /* the thread has ended: drain, then free */
	uint64_t dropped[STEPSCOPE_EVENT_TYPES]; /* totals of this stream, by type; written by its thread only */
	uint64_t gap_count;                      /* events dropped since the last GAP event that could be written */
	int32_t gap_net;                         /* net depth change of those events */
	int32_t gap_lowest;                      /* lowest depth they reached, <= 0 */
	uint64_t gap_tick;                       /* tick of the first of them */
	char name[32];                           /* thread name; "" unknown */
	/* Symbol of the call that the thread is in while no operators are recorded; 0: none. */
	uint32_t call;
	uint8_t reserved[52];
};
static_assert(sizeof(struct stepscope_slot) == 256, "slot");

struct stepscope_chunk {
	uint32_t magic; /* stored last (release) */
	uint32_t stream;
	uint64_t first_word; /* position of words[0] in the stream */
	uint64_t base_tick;
	uint32_t tid;
	uint32_t next; /* link in the free list, or to the stream's next chunk; used by the recorder only */
	uint64_t reserved[4];
	uint64_t words[(STEPSCOPE_CHUNK_BYTES - 64) / 8];
};
static_assert(sizeof(struct stepscope_chunk) == STEPSCOPE_CHUNK_BYTES, "chunk");
#define STEPSCOPE_CHUNK_WORDS ((STEPSCOPE_CHUNK_BYTES - 64) / 8)

#endif
