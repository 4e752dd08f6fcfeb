/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_table_json.c: see the header.
 */
#include "output/text/torch_table_json.h"

#include "base/json_write.h"
#include "base/storage.h"
#include "model/operator_inputs.h"

#include <string.h>

static void torch_json_number(struct json_writer *json, const char *key, double value)
{
	json_key(json, key);
	json_double(json, value);
}

static void torch_json_integer(struct json_writer *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_int(json, value);
}

static void torch_json_source(struct json_writer *json, const char *source)
{
	json_key(json, "stack");
	json_array_begin(json);
	while (*source) {
		size_t bytes = strcspn(source, "\n");

		json_string_n(json, source, bytes);
		source += bytes + (source[bytes] == '\n');
	}
	json_array_end(json);
}

static void torch_json_marks(struct json_writer *json, const struct torch_event *event)
{
	json_key(json, "is_user_annotation");
	json_bool(json, event->is_annotation);
	json_key(json, "is_async");
	json_bool(json, event->is_async);
}

static void torch_json_row(struct json_writer *json, const struct torch_row *row, const struct torch_table *table)
{
	json_object_begin(json);
	json_key(json, "key");
	json_string(json, row->first->name);
	torch_json_integer(json, "count", row->count);
	torch_json_number(json, "cpu_time_total", row->total_us);
	torch_json_number(json, "self_cpu_time_total", row->self_us);
	if (table->device) {
		torch_json_number(json, "device_time_total", row->device_us);
		torch_json_number(json, "self_device_time_total", row->self_device_us);
	}
	torch_json_integer(json, "cpu_memory_usage", row->bytes[0]);
	torch_json_integer(json, "self_cpu_memory_usage", row->self_bytes[0]);
	torch_json_integer(json, "device_memory_usage", row->bytes[1]);
	torch_json_integer(json, "self_device_memory_usage", row->self_bytes[1]);
	torch_json_number(json, "flops", table->has_flops ? row->flops : 0);
	torch_json_integer(json, "scope", row->first->scope);
	if (table->has_shapes) {
		json_key(json, "input_shapes");
		json_string(json, row->first->shapes);
	}
	if (row->first->source[0])
		torch_json_source(json, row->first->source);
	torch_json_marks(json, row->first);
	json_key(json, "is_top_level");
	json_bool(json, row->first->parent == TORCH_NONE);
	json_object_end(json);
}

/* Returns PyTorch's number of the thread, or stepscope's own if it is unknown. */
static int64_t torch_json_thread(const struct torch_ops *ops, uint32_t track)
{
	uint32_t number = ops->model->tracks[track]->torch_thread;
	return number ? number : (int64_t)track + 1;
}

/* Writes a list of texts, such as the types of the inputs. If they were not recorded it writes nothing. */
static void torch_json_texts(struct json_writer *json, const char *key, const struct inputs_part *line, char separator)
{
	struct inputs_part part = {0};

	if (!line->text)
		return;
	json_key(json, key);
	json_array_begin(json);
	while (operator_inputs_next(line, separator, &part))
		json_string_n(json, part.text, part.length);
	json_array_end(json);
}

static void torch_json_inputs(struct json_writer *json, const struct torch_ops *ops, const struct torch_event *event)
{
	struct operator_inputs inputs = operator_inputs_split(model_text(ops->model, event->inputs));

	torch_json_texts(json, "sizes", &inputs.sizes, ' ');
	torch_json_texts(json, "types", &inputs.types, ';');
	torch_json_texts(json, "strides", &inputs.strides, ' ');
	torch_json_texts(json, "values", &inputs.values, ';');
}

static void torch_json_event(struct json_writer *json, const struct torch_ops *ops, const struct torch_table *table,
                             uint32_t index, const uint32_t *id)
{
	const struct torch_event *event = &ops->events[index];

	json_object_begin(json);
	torch_json_integer(json, "id", id[index]);
	json_key(json, "name");
	json_string(json, event->name);
	if (event->step >= 0)
		torch_json_integer(json, "step", event->step);
	torch_json_number(json, "start", event->start_us);
	torch_json_number(json, "end", event->end_us);
	torch_json_integer(json, "thread", torch_json_thread(ops, event->track));
	torch_json_integer(json, "pid", ops->model->processes[ops->model->tracks[event->track]->process].pid);
	torch_json_integer(json, "tid", ops->model->tracks[event->track]->tid);
	torch_json_integer(json, "sequence_nr", event->sequence);
	torch_json_integer(json, "fwd_thread", event->forward_thread);
	torch_json_integer(json, "scope", event->scope);
	if (event->inputs)
		torch_json_inputs(json, ops, event);
	if (event->parent != TORCH_NONE)
		torch_json_integer(json, "parent", id[event->parent]);
	torch_json_integer(json, "cpu_memory_usage", event->bytes[0]);
	torch_json_integer(json, "device_memory_usage", event->bytes[1]);
	torch_json_number(json, "flops", table->has_flops ? event->flops : 0);
	json_key(json, "input_shapes");
	json_string(json, event->shapes);
	if (event->source[0])
		torch_json_source(json, event->source);
	torch_json_marks(json, event);
	json_object_end(json);
}

static void torch_json_events(struct json_writer *json, const struct torch_ops *ops, const struct torch_table *table)
{
	uint32_t *id = storage_resize(ops->model->storage, NULL, (size_t)ops->event_count + 1, sizeof(*id));

	for (uint32_t i = 0; i < ops->order_count; i++)
		id[ops->order[i]] = i;
	json_key(json, "events");
	json_array_begin(json);
	for (uint32_t i = 0; i < ops->order_count; i++) {
		torch_json_event(json, ops, table, ops->order[i], id);
		buffer_flow(json->out);
	}
	json_array_end(json);
	storage_release(ops->model->storage, id);
}

void torch_table_json(struct buffer *out, const struct torch_ops *ops, const struct torch_table *table, bool has_events)
{
	struct json_writer json;

	json_writer_init(&json, out, JSON_COMPACT);
	json_object_begin(&json);
	json_key(&json, "schema");
	json_string(&json, "stepscope.torch/1");
	if (has_events) {
		torch_json_events(&json, ops, table);
	} else {
		json_key(&json, "rows");
		json_array_begin(&json);
		for (uint32_t i = 0; i < ops->row_count; i++)
			torch_json_row(&json, &ops->rows[i], table);
		json_array_end(&json);
	}
	json_object_end(&json);
	buffer_add_byte(out, '\n');
}
