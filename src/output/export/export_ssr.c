/* SPDX-License-Identifier: Apache-2.0
 *
 * export_ssr.c: writes the model as a recording, exactly: a segment of ROWS blocks, see docs/file-format.md,
 * "Converted recordings".
 */
#include "base/memory.h"
#include "format/block.h"
#include "model/model_tables.h"
#include "output/export/compress.h"
#include "output/export/export_common.h"

#include <lz4.h>
#include <stdlib.h>

#define BLOCK_ROWS 65536u
#define TEXT_BYTES ((size_t)4 << 20) /* of one block of strings; a single longer text is possible */
#define TEXT_MAX ((uint32_t)15 << 20)

struct ssr {
	const struct model *model;
	struct writer w;
	const struct export_options *options;
	struct export_result *result;
	char *data, *packed;
	size_t length, capacity, packed_capacity;
	uint64_t spans_done, spans_total;
	uint64_t cut_texts;
};

static char *room(struct ssr *ssr, size_t bytes)
{
	if (ssr->length + bytes > ssr->capacity) {
		ssr->capacity = 2 * (ssr->length + bytes);
		ssr->data = memory_resize(ssr->data, ssr->capacity, 1);
	}
	ssr->length += bytes;
	return ssr->data + ssr->length - bytes;
}

static void put(struct ssr *ssr, const void *bytes, size_t length)
{
	memcpy(room(ssr, length), bytes, length);
}

/* Writes the data since begin_rows() as a block. */
static void write_block(struct ssr *ssr, enum stepscope_block_kind kind)
{
	struct stepscope_block block = {.magic = STEPSCOPE_BLOCK_MAGIC, .kind = (uint8_t)kind};
	size_t bound = (size_t)LZ4_compressBound((int)ssr->length);
	const char *data = ssr->data;
	if (bound > ssr->packed_capacity) {
		ssr->packed = memory_resize(ssr->packed, bound, 1);
		ssr->packed_capacity = bound;
	}
	int packed = LZ4_compress_default(ssr->data, ssr->packed, (int)ssr->length, (int)bound);
	block.bytes = block.raw_bytes = (uint32_t)ssr->length;
	if (packed > 0 && (size_t)packed < ssr->length) {
		block.encoding = STEPSCOPE_ENCODING_LZ4;
		block.bytes = (uint32_t)packed;
		data = ssr->packed;
	}
	block_seal(&block, data);
	writer_bytes(&ssr->w, &block, sizeof block);
	writer_bytes(&ssr->w, data, block.bytes);
}

static void begin_rows(struct ssr *ssr, uint32_t table, uint32_t owner, uint32_t first, uint32_t rows, uint32_t fields)
{
	const struct stepscope_rows head = {
		.table = (uint16_t)table, .fields = (uint16_t)fields, .owner = owner, .first = first, .rows = rows};
	ssr->length = 0;
	put(ssr, &head, sizeof head);
}

/* Writes rows of structs, column by column. */
static void put_rows(struct ssr *ssr, uint32_t table, uint32_t owner, const void *rows, uint32_t count)
{
	const struct model_field *fields = model_table_fields(table);
	size_t row_bytes = model_table_row_bytes(table);
	uint32_t field_count = 0;
	while (fields[field_count].bytes)
		field_count++;
	for (uint32_t first = 0; first < count; first += BLOCK_ROWS) {
		uint32_t n = count - first < BLOCK_ROWS ? count - first : BLOCK_ROWS;
		begin_rows(ssr, table, owner, first, n, field_count);
		for (uint32_t i = 0; i < field_count; i++)
			put(ssr, &fields[i].bytes, 1);
		for (uint32_t i = 0; i < field_count; i++) {
			const char *from = (const char *)rows + first * row_bytes + fields[i].offset;
			char *to = room(ssr, (size_t)n * fields[i].bytes);
			for (uint32_t k = 0; k < n; k++, from += row_bytes, to += fields[i].bytes)
				memcpy(to, from, fields[i].bytes);
		}
		write_block(ssr, STEPSCOPE_BLOCK_ROWS);
	}
}

/* ---- tables ---- */

static uint32_t text_length(struct ssr *ssr, uint32_t string)
{
	uint32_t length = intern_length(&ssr->model->strings, string);
	ssr->cut_texts += length > TEXT_MAX;
	return length < TEXT_MAX ? length : TEXT_MAX;
}

static void put_strings(struct ssr *ssr)
{
	uint32_t count = ssr->model->strings.count;
	for (uint32_t first = 0, end; first < count; first = end) {
		size_t bytes = 0;
		for (end = first; end < count && end - first < BLOCK_ROWS; end++) {
			uint32_t length = intern_length(&ssr->model->strings, end);
			if (end > first && bytes + length > TEXT_BYTES)
				break;
			bytes += length;
		}
		begin_rows(ssr, MODEL_TABLE_STRINGS, 0, first, end - first, 1);
		for (uint32_t i = first; i < end; i++) {
			uint32_t length = text_length(ssr, i);
			put(ssr, &length, sizeof length);
		}
		for (uint32_t i = first; i < end; i++) {
			uint32_t length = intern_length(&ssr->model->strings, i);
			put(ssr, model_text(ssr->model, i), length < TEXT_MAX ? length : TEXT_MAX);
		}
		write_block(ssr, STEPSCOPE_BLOCK_ROWS);
	}
}

static void put_tracks(struct ssr *ssr)
{
	uint32_t count = ssr->model->tracks_count;
	struct track_row *rows = memory_resize(NULL, (size_t)count + 1, sizeof *rows);
	for (uint32_t i = 0; i < count; i++) {
		const struct track *track = ssr->model->tracks[i];
		memset(&rows[i], 0, sizeof rows[i]);
		rows[i] = (struct track_row){.process = track->process,
		                             .kind = track->kind,
		                             .name = track->name,
		                             .sort = track->sort,
		                             .torch_thread = track->torch_thread,
		                             .tid = track->tid,
		                             .device = track->device,
		                             .is_main = track->is_main,
		                             .is_profiled = track->is_profiled};
	}
	put_rows(ssr, MODEL_TABLE_TRACKS, 0, rows, count);
	free(rows);
}

static void put_chunk(struct ssr *ssr, uint32_t track, const struct span_chunk *chunk, struct span_row *rows)
{
	for (uint32_t i = 0; i < chunk->count; i++)
		rows[i] = (struct span_row){.start_ns = chunk->start_ns[i],
		                            .dur_ns = chunk->dur_ns[i],
		                            .sequence = span_sequence(chunk, i),
		                            .correlation = span_correlation(chunk, i),
		                            .name = chunk->name[i],
		                            .parent = chunk->parent[i],
		                            .shape = chunk->shape[i],
		                            .inputs = span_inputs(chunk, i),
		                            .stack = span_stack(chunk, i),
		                            .depth = chunk->depth[i],
		                            .kind = chunk->kind[i],
		                            .flags = chunk->flags[i],
		                            .phase = chunk->phase[i]};
	put_rows(ssr, MODEL_TABLE_SPANS, track, rows, chunk->count);
	ssr->result->slices += chunk->count;
	export_progress(ssr->options, ssr->spans_done += chunk->count, ssr->spans_total);
}

static void put_spans(struct ssr *ssr)
{
	struct span_row *rows = memory_resize(NULL, CHUNK_ROWS, sizeof *rows);
	for (uint32_t t = 0; t < ssr->model->tracks_count; t++) {
		const struct track *track = ssr->model->tracks[t];
		for (uint32_t c = 0; c < track->chunk_count; c++) {
			put_chunk(ssr, t, track->chunks[c], rows);
			model_chunk_done(ssr->model, track->chunks[c]);
		}
	}
	free(rows);
}

static void export_ssr_put_series(struct ssr *ssr)
{
	for (uint32_t i = 0; i < ssr->model->series_count; i++) {
		const struct value_series *series = ssr->model->series[i];
		const struct series_row row = {series->process, series->name, series->is_metric, series->subject,
		                               series->unit};
		struct value_row *rows = memory_resize(NULL, (size_t)series->count + 1, sizeof *rows);
		for (uint32_t k = 0; k < series->count; k++)
			rows[k] = (struct value_row){series->time_ns[k], series->value[k]};
		put_rows(ssr, MODEL_TABLE_SERIES, 0, &row, 1);
		put_rows(ssr, MODEL_TABLE_VALUES, i, rows, series->count);
		ssr->result->counters += series->count;
		free(rows);
	}
}

static void put_model(struct ssr *ssr)
{
	const struct model *model = ssr->model;
	put_strings(ssr);
	put_rows(ssr, MODEL_TABLE_PROCESSES, 0, model->processes, model->processes_count);
	put_rows(ssr, MODEL_TABLE_META, 0, model->meta, model->meta_count);
	put_rows(ssr, MODEL_TABLE_LEDGER, 0, model->ledger, model->ledger_count);
	if (model->stacks_count > 1) /* the first one is unused */
		put_rows(ssr, MODEL_TABLE_STACKS, 0, model->stacks + 1, model->stacks_count - 1);
	put_tracks(ssr);
	put_spans(ssr);
	put_rows(ssr, MODEL_TABLE_STEPS, 0, model->steps, model->steps_count);
	export_ssr_put_series(ssr);
	put_rows(ssr, MODEL_TABLE_MEMORY, 0, model->memory, model->memory_count);
	put_rows(ssr, MODEL_TABLE_OWNERS, 0, model->owners, model->owners_count);
	put_rows(ssr, MODEL_TABLE_SEGMENTS, 0, model->segments, model->segments_count);
	put_rows(ssr, MODEL_TABLE_READINGS, 0, model->readings, model->readings_count);
	put_rows(ssr, MODEL_TABLE_MARKS, 0, model->marks, model->marks_count);
	put_rows(ssr, MODEL_TABLE_ARGS, 0, model->args, model->args_count);
	put_rows(ssr, MODEL_TABLE_LINKS, 0, model->links, model->links_count);
	put_rows(ssr, MODEL_TABLE_SAMPLES, 0, model->samples, model->samples_count);
	ssr->length = 0;
	put(ssr, "converted", 9);
	write_block(ssr, STEPSCOPE_BLOCK_END);
	ssr->result->instants = model->marks_count;
	ssr->result->flows = model->links_count;
}

static void put_header(struct ssr *ssr)
{
	const struct model *model = ssr->model;
	struct stepscope_segment_header header = {
		.clock = STEPSCOPE_CLOCK_NANOSECONDS,
		.role = STEPSCOPE_ROLE_IMPORTED,
		.rank = -1,
		.world_size = -1,
		.tick_hz = 1000000000,
		.tick_step = 1,
		.flags = STEPSCOPE_SEGMENT_CONVERTED,
	};
	if (model->processes_count == 1) {
		header.pid = (uint32_t)model->processes[0].pid;
		header.rank = model->processes[0].rank;
		header.world_size = model->processes[0].world_size;
	}
	segment_header_seal(&header);
	writer_bytes(&ssr->w, &header, sizeof header);
}

static enum status ssr_write(const struct model *model, const char *path, const struct export_options *options,
                             struct export_result *result, struct error *err)
{
	struct output *output;
	*result = (struct export_result){0};
	if (options->has_steps || options->processes || options->max_bytes)
		return error_set(err, STATUS_USAGE,
		                 "a recording (.ssr) contains the whole input: options for "
		                 "steps, ranks and sizes do not apply");
	if (output_stem_length(path) != strlen(path))
		return error_set(err, STATUS_USAGE, "a recording (.ssr) is compressed already: '%s'", path);
	enum status status = output_open(path, &output, err);
	if (status != STATUS_OK)
		return status;
	struct ssr ssr = {.model = model,
	                  .w = writer_begin(output),
	                  .options = options,
	                  .result = result,
	                  .spans_total = export_span_total(model)};
	put_header(&ssr);
	put_model(&ssr);
	writer_end(&ssr.w);
	free(ssr.data);
	free(ssr.packed);
	if (ssr.cut_texts)
		export_note(result, "%llu texts of more than 15 MiB were cut", (unsigned long long)ssr.cut_texts);
	result->bytes_raw = output_raw_bytes(output);
	return output_close(output, &result->bytes_file, err);
}

const struct exporter export_ssr = {
	.name = "ssr",
	.suffix = ".ssr",
	.what = "a recording with all data of the input",
	.viewers = "stepscope",
	.is_whole = true,
	.write = ssr_write,
};
