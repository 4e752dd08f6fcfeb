/* SPDX-License-Identifier: Apache-2.0
 *
 * validate.h: checks whether a trace file obeys the rules of the programs that read it. Every rule was found by
 * breaking it and reading the file with the real program. The file is read once, front to back; memory is bounded by
 * VALIDATE_MOST_SPANS.
 *
 * Offsets are bytes of the decompressed file. Rules are rows of validate_rules. If an "error" rule is broken, a reader
 * refuses the file, loses events or shows wrong numbers; readers survive a broken "note" rule.
 */
#ifndef OUTPUT_VALIDATE_VALIDATE_H
#define OUTPUT_VALIDATE_VALIDATE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Beyond this number of spans (or links of one kind), the rules that compare events with each other stop: P3, H6, P5,
 * V1..V6 need 24 to 32 bytes per span. */
#define VALIDATE_MOST_SPANS 16000000u

/* id, is an error, reader, sentence */
#define VALIDATE_RULES(X)                                                                                              \
	X(T1, true, "TensorBoard plugin", "an \"X\" event has no \"cat\": the whole file is refused")                  \
	X(T2, true, "TensorBoard plugin", "an event has no \"name\" and the markers at the end are missing")           \
	X(T3, true, "TensorBoard plugin", "the \"tid\" of an operation is not a number")                               \
	X(T4, true, "TensorBoard plugin", "a kernel has no \"device\" in its args")                                    \
	X(T5, true, "TensorBoard plugin", "an operation or kernel has no \"dur\"")                                     \
	X(T6, true, "TensorBoard plugin", "a \"fwdbwd\" event has no \"id\" or no \"ts\"")                             \
	X(T7, true, "TensorBoard plugin, HTA", "the step in a \"ProfilerStep#\" name is not a number")                 \
	X(T8, true, "TensorBoard plugin", "\"args\" is null")                                                          \
	X(T9, true, "TensorBoard plugin", "the file is a bare array of events")                                        \
	X(T10, false, "TensorBoard plugin, HTA", "there is no \"ProfilerStep#N\": all becomes one step")               \
	X(T12, true, "chrome://tracing, Perfetto", "a bare NaN, Infinity or N/A is not JSON")                          \
	X(T13, false, "TensorBoard plugin", "over 86.4 s lie between the markers: the file is written again, slowly")  \
	X(H1, false, "HTA", "the file's name does not end in .json or .gz: it is not found")                           \
	X(H2, true, "HTA",                                                                                             \
	  "\"rank\": has no blank behind it, or a number that is not the file's: the rank is misread")                 \
	X(H2n, false, "HTA", "there is no \"distributedInfo\" with a rank before the events: the rank is taken as 0")  \
	X(H5, true, "HTA", "a device event has no stream, or one that is not a number of 0 or more")                   \
	X(H5c, false, "HTA", "a host event has \"stream\" in its args and is taken for a device event")                \
	X(H5z, false, "HTA", "device events are on stream 0: they belong to no step")                                  \
	X(H6, false, "HTA", "device events share a \"correlation\" that no host event has, or that several have")      \
	X(H9, true, "HTA", "an arg has the wrong type")                                                                \
	X(H9n, false, "HTA", "an arg that should be a number is null")                                                 \
	X(H10, true, "HTA", "a duration is above 7 days: the event is dropped")                                        \
	X(P1, true, "Perfetto, chrome://tracing", "a control character stands in a string")                            \
	X(P1n, false, "Perfetto", "a \\u escape is shown as it is written")                                            \
	X(P2, true, "Perfetto", "\"ts\" or \"dur\" is missing, negative, or not a number")                             \
	X(P3, true, "Perfetto, TensorBoard plugin", "\"X\" events of one thread overlap without nesting")              \
	X(P5, false, "Perfetto", "the \"id\" of a flow is a string: it is read as hexadecimal")                        \
	X(P5n, false, "Perfetto, chrome://tracing", "a flow has only one end")                                         \
	X(P6, true, "Perfetto", "a counter's value is not a number")                                                   \
	X(P7, true, "Perfetto", "an instant of a thread has no \"tid\"")                                               \
	X(P10, false, "Perfetto, HTA, TensorBoard plugin", "zstd: only gzip and plain files are opened")               \
	X(C1, false, "chrome://tracing", "\"displayTimeUnit\" is neither \"ms\" nor \"ns\"")                           \
	X(C2, false, "chrome://tracing", "over 512 MB of text: more than the viewer can hold")                         \
	X(C3, false, "HTA, TensorBoard plugin", "the array does not end with \"]\"")                                   \
	X(V1, true, "torch", "a kernel starts before its cudaLaunchKernel")                                            \
	X(V2, true, "torch", "a stream wait or event sync does not say which event record it waits for")               \
	X(V3, true, "torch", "a kernel still runs on the stream when its Stream Sync starts")                          \
	X(V4, true, "torch", "a stream wait points to an event record that is later or missing")                       \
	X(V5, true, "torch", "record_param_comms lacks metadata of the collective")                                    \
	X(V6, true, "torch", "several backward operations share a sequence number")                                    \
	X(W1, true, "Perfetto", "a packet is cut off or malformed")                                                    \
	X(W2, true, "Perfetto", "a field has another wire type than the schema says")                                  \
	X(W3, true, "Perfetto", "a packet with interned names or track events has no sequence id")                     \
	X(W4, true, "Perfetto", "an interned name is used that was not defined")                                       \
	X(W5, true, "Perfetto", "interned names are used without SEQ_NEEDS_INCREMENTAL_STATE")                         \
	X(W6, true, "Perfetto", "incremental state is used before it was cleared once")                                \
	X(W7, true, "Perfetto", "an event is on a track that was not described before")                                \
	X(W8, true, "Perfetto", "a slice ends that did not begin")                                                     \
	X(W9, true, "Perfetto", "a thread's track has a parent")                                                       \
	X(W10, true, "Perfetto", "a track event has no timestamp")                                                     \
	X(W11, false, "Perfetto", "a slice does not end")                                                              \
	X(W12, true, "Perfetto", "the trace's clock goes backwards from one snapshot to the next")                     \
	X(W13, true, "Perfetto", "a slice ends before it began")

enum validate_rule {
#define X(id, is_error, reader, text) VALIDATE_##id,
	VALIDATE_RULES(X)
#undef X
	VALIDATE_RULE_COUNT
};

struct validate_row {
	const char *id;
	bool is_error;
	const char *reader, *text;
};
extern const struct validate_row validate_rules[VALIDATE_RULE_COUNT];

struct validate_finding {
	uint64_t count;
	uint64_t first_offset;
	char detail[120]; /* of the first breach: a name, a value; "" */
};

struct validation {
	const char *format;      /* "chrome" or "perfetto" */
	const char *form;        /* "object", "array", "packets"; NULL: not a trace */
	const char *compression; /* "none", "gzip", "zstd" */
	uint64_t bytes;          /* decompressed */
	uint64_t events, spans, flows;
	struct validate_finding findings[VALIDATE_RULE_COUNT];
	bool is_partly_checked; /* more than VALIDATE_MOST_SPANS spans */
};

/* Returns STATUS_INPUT if the file cannot be read to its end; `validation` then has the findings until that point. */
enum status validate_file(const char *path, struct validation *validation, struct error *err) MUST_CHECK;

void validate_count(struct validation *validation, enum validate_rule rule, uint64_t offset, const char *detail);
bool validation_has_errors(const struct validation *validation);

/* The two kinds of files; validate_file() detects the kind. */
struct input_stream;
enum status validate_chrome(struct input_stream *input, struct validation *validation, struct error *err) MUST_CHECK;
enum status validate_perfetto(struct input_stream *input, struct validation *validation, struct error *err) MUST_CHECK;

#endif
