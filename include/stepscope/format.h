/* SPDX-License-Identifier: Apache-2.0
 *
 * format.h: the bytes of a recording: event words, the pool in shared memory, and the segment file. Little-endian.
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
 * comes from the chunk's base_tick: a head whose low half is smaller than its predecessor's has not wrapped, the writer
 * puts a TIME event before the first event that is 2^32 ticks or more after the base.
 */
#ifndef STEPSCOPE_FORMAT_H
#define STEPSCOPE_FORMAT_H

#include <assert.h>
#include <stdint.h>

/* ---- events ---------------------------------------------------------------------------------------------------------- */

enum stepscope_event {
	STEPSCOPE_EVENT_NONE = 0,
	STEPSCOPE_EVENT_BEGIN = 1, /* id: symbol (its kind tells range, phase, op, ...); optional STEPSCOPE_BEGIN_ words */
	STEPSCOPE_EVENT_END = 2, /* id: enum stepscope_end, what is being closed */
	STEPSCOPE_EVENT_SWITCH =
		3, /* id: symbol; END of the innermost open span of the same class, then BEGIN, at one tick */
	STEPSCOPE_EVENT_MARK = 4,  /* id: symbol */
	STEPSCOPE_EVENT_VALUE = 5, /* id: symbol (counter or metric); [0] value, f64 bits; optional [1] track */
	STEPSCOPE_EVENT_ALLOC = 6, /* id: memory id, see below; [0] address [1] bytes */
	STEPSCOPE_EVENT_FREE = 7,  /* id: memory id without category; [0] address, optional [1] bytes */
	STEPSCOPE_EVENT_STEP = 8,  /* id: enum stepscope_step_event; payload there */
	STEPSCOPE_EVENT_SPAN =
		9, /* id: symbol; complete span: [0] track (0: this stream) [1] start tick [2] duration ticks */
	STEPSCOPE_EVENT_LINK =
		10, /* id: enum stepscope_link * 2 + (1: incoming); [0] link number; belongs to the event before */
	STEPSCOPE_EVENT_SAMPLE =
		11, /* id: symbol (what was sampled); [0] stack number [1] weight [2] track (0: this stream) */
	STEPSCOPE_EVENT_ARG = 12, /* id: symbol (key); [0] enum stepscope_arg [1] value; belongs to the event before */
	STEPSCOPE_EVENT_GAP =
		13, /* id 0; [0] events dropped here [1] net depth change (i32) << 32 | lowest depth (u32 of i32)
	                                [2] tick of the first of them */
	STEPSCOPE_EVENT_TIME = 14, /* id 0; [0] full tick of this head: new base for the low halves */
	STEPSCOPE_EVENT_EXTENDED =
		15, /* id: enum stepscope_extended; kinds a reader does not know are skipped by length */
	STEPSCOPE_EVENT_TYPES = 16,
};

/* Words of a BEGIN, as many as say something. */
enum stepscope_begin {
	STEPSCOPE_BEGIN_SEQUENCE =
		0, /* autograd sequence number in bits 0..47, PyTorch's number of the thread that ran the
	                               * forward in 48..63 (0: not backward); all ones: none */
	STEPSCOPE_BEGIN_WHERE =
		1, /* symbol of the inputs (kind INPUTS) in bits 0..31, symbol of the innermost Python frame
	                               * (kind FRAME) in 32..63; 0: none */
};
#define STEPSCOPE_NO_SEQUENCE UINT64_MAX

enum stepscope_extended {
	STEPSCOPE_EXTENDED_TORCH_THREAD =
		1, /* [0] PyTorch's own number of this stream's thread; before its first operator, and its first one
	            * in a window [1] 1: a profiler in the program follows the thread, 0: it does not (may be missing) */
	STEPSCOPE_EXTENDED_MEMORY_OWNER =
		2, /* somebody holds memory at this moment: [0] address [1] memory id as of an ALLOC [2] bytes, 0: not known. An
	            * input is one if nothing else is known of it. */
	STEPSCOPE_EXTENDED_CALL =
		3, /* written by a rescue behind all that it found of the stream: [0] symbol of the call that the thread was in
	            * while no operators were recorded */
};

enum stepscope_end { /* an END is ignored when none is open; that of a phase closes every span opened after it */
	STEPSCOPE_END_DETAIL = 0, /* innermost range, op, ...; not past an open phase, micro-batch or step */
	STEPSCOPE_END_PHASE = 1,  /* innermost phase or micro-batch */
	STEPSCOPE_END_BENEATH =
		2, /* a range, op, ... that others were begun in which go on: [0] how many (steps, phases and micro-batches not
	            * counted), 0: none, optional [1] tick when it ended, if that was before */
};

enum stepscope_step_event {
	STEPSCOPE_STEP_BEGIN = 0,   /* [0] number (i64) */
	STEPSCOPE_STEP_END = 1,     /* [0] number, optional [1] 1: it was cut short, and is not a complete one
	                             * optional [2] CPU time of the thread since the step's begin, ns [3] how often it stopped to
	                             * wait for something in it, optional [4] its page faults that read from no disk */
	STEPSCOPE_STEP_TOKENS = 2,  /* [0] tokens to add to the open step */
	STEPSCOPE_STEP_SAMPLES = 3, /* [0] samples to add to the open step */
	STEPSCOPE_STEP_CAPTURE =
		4, /* [0] enum stepscope_capture from here on in the process [1] mask of stepscope_active bits
	            * optional [2] number of the step that begins here, where the program marked none and they were counted */
	STEPSCOPE_STEP_RESULT = 5, /* reserved for optimizer results (skipped step) */
	STEPSCOPE_STEP_WINDOW =
		6, /* what a profiler in the program asked for: [0] its number, from 1 on [1] 1 begins, 0 ends */
	STEPSCOPE_STEP_TRAINING =
		7, /* while no detail is recorded, what PyTorch did: [0] enum stepscope_training in bits 0..7, flags from
	            * 8 on [1] start tick [2] end tick, optional [3] which optimizer; or, of operators, which module is called, as the
	            * argument "torch.module" says, and [4] the symbol of its name */
	STEPSCOPE_STEP_COUNTED = 8, /* [0] how many steps that the program does not mark have ended, as counted so far */
};

enum stepscope_training {               /* what a stretch of a thread's time says about the steps of its program */
	STEPSCOPE_TRAINING_OP = 0,      /* operators of no graph */
	STEPSCOPE_TRAINING_FORWARD = 1, /* operators that a graph remembers */
	STEPSCOPE_TRAINING_DATA = 2,    /* the wait for a batch */
	STEPSCOPE_TRAINING_BACKWARD = 3,
	STEPSCOPE_TRAINING_OPTIMIZER = 4, /* a call */
	STEPSCOPE_TRAINING_ZERO_GRAD = 5,
	STEPSCOPE_TRAINING_SCALER = 6,      /* update of a gradient scaler */
	STEPSCOPE_TRAINING_SAVE = 7,        /* torch.save */
	STEPSCOPE_TRAINING_LOADER = 8,      /* the start of a loader's workers */
	STEPSCOPE_TRAINING_HOOKED = 9,      /* an optimizer's call in the backward that is noted behind it */
	STEPSCOPE_TRAINING_LOADER_END = 10, /* waiting until they are gone */
	STEPSCOPE_TRAINING_PROFILER_STEP =
		11, /* from step() to step() of a profiler in the program, behind what is in it; its number, and 1 */
	STEPSCOPE_TRAINING_IS_TRAINING = 1 << 8, /* backward: gradients were accumulated */
	STEPSCOPE_TRAINING_IS_INSIDE = 1 << 9,   /* in an optimizer's call */
	STEPSCOPE_TRAINING_IS_EMPTY = 1 << 10,   /* data: no batch came */
};

enum stepscope_capture {            /* what a schedule asks for */
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

/* Of the argument "torch.optimizer", and of what is noted of its call: the optimizer's address in bits 0 to 47, in those above it which of
 * the objects that lay there it is, and whether it was made since its thread called one before. */
#define STEPSCOPE_OPTIMIZER_ADDRESS 0xffffffffffffull
#define STEPSCOPE_OPTIMIZER_IS_NEW (1ull << 63)

#define STEPSCOPE_MODULE_TRAINS 1u /* bit of the argument "torch.module", above it which module is called */

/* memory id: category in bits 0..7, device + 1 in bits 8..23 (host memory: 0) */
#define STEPSCOPE_MEMORY_ID(category, device) ((uint32_t)(category) | (uint32_t)((device) + 1) << 8)
#define STEPSCOPE_MEMORY_UNKNOWN 255u /* category of an allocation whose maker says none: readers find it out */

/* ---- symbols: names with a kind -------------------------------------------------------------------------------------- */

enum stepscope_symbol_kind {       /* the first numbers are those of enum stepscope_kind */
	STEPSCOPE_SYMBOL_TEXT = 0, /* keys, shapes, anything that is no name of an event */
	STEPSCOPE_SYMBOL_RANGE = 1,
	STEPSCOPE_SYMBOL_PHASE = 2,
	STEPSCOPE_SYMBOL_OP = 3,
	STEPSCOPE_SYMBOL_COUNTER = 4,
	STEPSCOPE_SYMBOL_MARK = 5,
	STEPSCOPE_SYMBOL_METRIC = 6,
	STEPSCOPE_SYMBOL_MICRO_BATCH = 7,
	STEPSCOPE_SYMBOL_ANNOTATION = 8, /* user_annotation of imported traces */
	STEPSCOPE_SYMBOL_PYTHON = 9,
	STEPSCOPE_SYMBOL_RUNTIME = 10, /* call into a device runtime or driver */
	STEPSCOPE_SYMBOL_KERNEL = 11,
	STEPSCOPE_SYMBOL_MEMCPY = 12,
	STEPSCOPE_SYMBOL_MEMSET = 13,
	STEPSCOPE_SYMBOL_SYNC = 14,
	STEPSCOPE_SYMBOL_COLLECTIVE = 15,
	STEPSCOPE_SYMBOL_OVERHEAD = 16,
	STEPSCOPE_SYMBOL_FRAME = 17,
	STEPSCOPE_SYMBOL_SAMPLE = 18,
	STEPSCOPE_SYMBOL_OTHER = 19,
	STEPSCOPE_SYMBOL_META = 20, /* "key NUL value"; a MARK of it is a fact (the segment reader hands it out as meta) */
	STEPSCOPE_SYMBOL_BACKWARD = 21, /* a node of an autograd graph */
	STEPSCOPE_SYMBOL_SCRIPT = 22,   /* a TorchScript function */
	STEPSCOPE_SYMBOL_MODULE = 23,   /* a call of the forward of an nn.Module */
	STEPSCOPE_SYMBOL_INPUTS = 24,   /* inputs of an operator, see docs/file-format.md */
};

/* Symbols every recording has, so that their numbers are known; 0 is "none". They are written like all others. */
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
	uint16_t length; /* bytes of text that follow, no terminator */
	uint8_t kind;    /* enum stepscope_symbol_kind */
	uint8_t flags;   /* 0 */
};
static_assert(sizeof(struct stepscope_symbol) == 8, "symbol head");

/* ---- segment file ---------------------------------------------------------------------------------------------------------
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
	STEPSCOPE_CLOCK_NANOSECONDS = 4, /* ns since an origin that META "clock.origin_ns" gives (converted traces) */
};

enum stepscope_segment_flag {
	/* Holds a copy of the process's coarse events (steps, phases, micro-batches, values, marks), never removed by rotation. A
	 * reader takes from it what is older than the oldest other segment of the session that is still there. */
	STEPSCOPE_SEGMENT_COARSE = 1,
	/* Made by `stepscope convert`: ROWS blocks instead of events. */
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
	uint64_t start_time; /* of the process: field 22 of /proc/PID/stat, clock ticks since boot */
	uint8_t boot_id[16];
	uint8_t run_id[16];
	uint32_t clock;     /* enum stepscope_clock */
	uint32_t role;      /* enum stepscope_role */
	int32_t rank;       /* -1: not known */
	int32_t world_size; /* -1: not known */
	uint64_t tick_hz;   /* nominal; CLOCK blocks give the real rate */
	uint32_t tick_step; /* smallest difference seen between two reads, in ticks */
	uint32_t parent_pid;
	uint64_t first_tick;
	uint32_t flags; /* enum stepscope_segment_flag */
	uint32_t session; /* segments with equal pid, start_time and session share symbols and streams; an exec makes a new one */
	uint64_t pid_namespace; /* that pid and parent_pid belong to: inode number of /proc/PID/ns/pid; 0: not known */
	uint8_t reserved[8];
};
static_assert(sizeof(struct stepscope_segment_header) == 128, "segment header");

enum stepscope_block_kind {          /* unknown kinds are skipped by length */
	STEPSCOPE_BLOCK_EVENTS = 1,  /* columns, drawn in src/format/block.h */
	STEPSCOPE_BLOCK_SYMBOLS = 2, /* struct stepscope_symbol + text, 8-byte aligned, back to back */
	STEPSCOPE_BLOCK_STREAM = 3,  /* struct stepscope_stream_info + name: describes block.stream */
	STEPSCOPE_BLOCK_CLOCK = 4,   /* struct stepscope_anchor, one or more */
	STEPSCOPE_BLOCK_META = 5,    /* key NUL value NUL, repeated; a later value of a key wins */
	STEPSCOPE_BLOCK_DROPS = 6,   /* struct stepscope_drops: totals so far of block.stream, the last one wins */
	STEPSCOPE_BLOCK_STACKS = 7,  /* struct stepscope_stack_node, one or more */
	STEPSCOPE_BLOCK_TRACK = 8,   /* struct stepscope_track_info + name */
	STEPSCOPE_BLOCK_END = 10,    /* reason as text: the process closed this recording; absent after a kill */
	STEPSCOPE_BLOCK_ROWS =
		11, /* struct stepscope_rows, a byte per field: its width, then the fields column by column */
};

enum stepscope_encoding {
	STEPSCOPE_ENCODING_RAW = 0,
	STEPSCOPE_ENCODING_LZ4 = 1
};

enum stepscope_block_flag {
	STEPSCOPE_BLOCK_RESCUED = 1, /* written by the rescue, not by the process */
	STEPSCOPE_BLOCK_BEGIN_WORDS =
		2, /* EVENTS: words of a BEGIN are packed in their own way, see src/format/payload.h */
};

struct stepscope_block {
	uint32_t magic;
	uint32_t bytes;      /* of data that follow */
	uint32_t crc;        /* CRC-32C of header (this field 0) and data */
	uint8_t kind;        /* enum stepscope_block_kind */
	uint8_t encoding;    /* enum stepscope_encoding */
	uint8_t shift;       /* EVENTS: ticks were divided by 2^shift */
	uint8_t flags;       /* enum stepscope_block_flag */
	uint32_t stream;     /* number of the thread's stream; 0: the process */
	uint32_t raw_bytes;  /* data after decompression */
	uint64_t first_word; /* EVENTS: position in the stream of the first word, in words since its start */
	uint32_t words;      /* EVENTS: words of the stream covered: [first_word, first_word + words) */
	uint32_t events;
	uint64_t first_tick;
	uint64_t last_tick;
	uint64_t rescue; /* RESCUED: the pool it came from (tick of its first anchor); else 0 */
};
static_assert(sizeof(struct stepscope_block) == 64, "block header");

#define STEPSCOPE_MAX_BLOCK_BYTES (16u << 20) /* a reader refuses bigger `bytes` or `raw_bytes` */

enum stepscope_stream_kind {
	STEPSCOPE_STREAM_THREAD = 0,
	STEPSCOPE_STREAM_SIGNAL = 1, /* events of signal handlers that interrupted the recorder in thread tid */
	STEPSCOPE_STREAM_SELF = 2,   /* the recorder's own thread: values of the process once a second */
	STEPSCOPE_STREAM_IMPORTED = 3,
};

struct stepscope_stream_info {
	uint32_t kind; /* enum stepscope_stream_kind */
	uint32_t tid;
	uint32_t flags;      /* 1: main thread; 2: the thread has ended, its last event is its end */
	uint32_t name_bytes; /* of UTF-8 that follow */
};
static_assert(sizeof(struct stepscope_stream_info) == 16, "stream info");

struct stepscope_track_info { /* a row of the timeline that is not one of our threads: device stream, queue */
	uint32_t track;       /* 1.. */
	uint32_t kind;        /* 0 other, 1 thread, 2 device stream */
	int32_t device;       /* -1: none */
	int32_t stream;       /* device stream or thread id */
	uint32_t process;     /* pid it belongs to */
	uint32_t name_bytes;
};
static_assert(sizeof(struct stepscope_track_info) == 24, "track info");

struct stepscope_anchor { /* the clocks at one instant; ticks in between are interpolated */
	uint64_t tick;
	int64_t raw_ns;        /* CLOCK_MONOTONIC_RAW */
	int64_t monotonic_ns;  /* CLOCK_MONOTONIC */
	int64_t realtime_ns;   /* CLOCK_REALTIME */
	uint32_t window_ticks; /* uncertainty of the reading */
	uint32_t clock;        /* enum stepscope_clock that is in use from here on */
};
static_assert(sizeof(struct stepscope_anchor) == 40, "anchor");

struct stepscope_rows {  /* rows of a table of a converted recording */
	uint16_t table;  /* enum model_table_number in src/model/model_tables.h */
	uint16_t fields; /* of each row */
	uint32_t owner;  /* which track or series they are of */
	uint32_t first;  /* number of the first row: of the strings in the file, else of the piece of the table */
	uint32_t rows;
};
static_assert(sizeof(struct stepscope_rows) == 16, "rows");

struct stepscope_drops {
	uint64_t by_type[STEPSCOPE_EVENT_TYPES]; /* events dropped, by enum stepscope_event */
};

struct stepscope_stack_node { /* a stack is a node; its caller is `parent` (0: root) */
	uint32_t node;
	uint32_t parent;
	uint32_t frame; /* symbol of kind frame */
	uint32_t line;  /* 0: not known */
};

/* ---- pool: a file in /dev/shm/stepscope.<uid>.<pid>.<starttime> (or memfd), mode 0600 -----------------------------------
 *
 *   +----------------+--------------+---------+-----------------------------+
 *   | header 4096 B  | stream slots | symbols | chunks of 8 KiB             |
 *   +----------------+--------------+---------+-----------------------------+
 *
 * After a kill its contents complete the segment: for every chunk that has the magic, the words of [first_word, ...) that
 * no EVENTS block of the stream covers. Free chunks are all zero.
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
	uint32_t is_closed;    /* 1: everything is in the segment; nothing to rescue */
	uint64_t symbols_used; /* bytes, atomic */
	uint64_t free_list;    /* the recorder's own; ignored by the rescue */
	uint32_t shift;        /* quantum the drainer uses */
	uint32_t reserved;
	uint64_t dropped[STEPSCOPE_EVENT_TYPES];  /* events of threads that got no slot, by type, atomic */
	struct stepscope_segment_header identity; /* as in the segment that is being written */
	struct stepscope_anchor first_anchor, last_anchor;
	char segment_path[1400]; /* NUL-terminated absolute path of the segment being written */
};
static_assert(sizeof(struct stepscope_pool_header) <= 4096, "pool header");

struct stepscope_slot {  /* one per live thread (and one more per thread that was interrupted by a signal handler) */
	uint32_t stream; /* 0: free; 2^32-1: being taken */
	uint32_t tid;
	uint32_t kind;                           /* enum stepscope_stream_kind */
	uint32_t is_exited;                      /* the thread is gone: drain, then free */
	uint64_t dropped[STEPSCOPE_EVENT_TYPES]; /* totals of this stream, by type; written by its thread only */
	uint64_t gap_count;                      /* of these, dropped since the last GAP event that could be written */
	int32_t gap_net;                         /* their net depth */
	int32_t gap_lowest;                      /* their lowest depth, <= 0 */
	uint64_t gap_tick;                       /* of the first of them */
	char name[32];                           /* thread name; "" unknown */
	uint32_t call; /* symbol of the call that the thread is in while no operators are recorded; 0: none */
	uint8_t reserved[52];
};
static_assert(sizeof(struct stepscope_slot) == 256, "slot");

struct stepscope_chunk {
	uint32_t magic; /* stored last (release) */
	uint32_t stream;
	uint64_t first_word; /* position of words[0] in the stream */
	uint64_t base_tick;
	uint32_t tid;
	uint32_t next; /* free list; the recorder's own */
	uint64_t reserved[4];
	uint64_t words[(STEPSCOPE_CHUNK_BYTES - 64) / 8];
};
static_assert(sizeof(struct stepscope_chunk) == STEPSCOPE_CHUNK_BYTES, "chunk");
#define STEPSCOPE_CHUNK_WORDS ((STEPSCOPE_CHUNK_BYTES - 64) / 8)

#endif
