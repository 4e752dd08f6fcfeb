/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_functions.c: the table `functions` of a comparison, for profiles of stacks: the content of a differential
 * flame graph, function by function. Profiles have different lengths, so shares are compared; the counts are listed
 * beside them.
 */
#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/units.h"
#include "compare/comparison_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARE(text)                                                                                                    \
	.type = TABLE_DOUBLE, .unit = UNIT_RATIO, .role = ROLE_SHARE, .denominator = "all samples of the side",        \
	.definition = (text)

static const struct table_column columns[FUNCTIONS_COLUMNS] = {
	[FUNCTIONS_SELF_CHANGE] = {.name = "self_change_ratio",
                                   .title = "points",
                                   SHARE("new minus base, for the share of samples in which the function is "
                                         "innermost; all rows sum to 0")},
	[FUNCTIONS_BASE_SELF_RATIO] = {.name = "base_self_ratio",
                                       .title = "base",
                                       SHARE("share of the base's samples in which the function is innermost, "
                                             "mean over the runs")},
	[FUNCTIONS_NEW_SELF_RATIO] = {.name = "new_self_ratio", .title = "new", SHARE("same for the new side")},
	[FUNCTIONS_TOTAL_CHANGE] = {.name = "total_change_ratio",
                                    .title = "total points",
                                    SHARE("new minus base, for the share of samples with the function anywhere in "
                                          "the stack")},
	[FUNCTIONS_BASE_TOTAL_RATIO] = {.name = "base_total_ratio",
                                        .title = "total base",
                                        SHARE("share of the base's samples with the function anywhere in the "
                                              "stack, mean over the runs")},
	[FUNCTIONS_NEW_TOTAL_RATIO] = {.name = "new_total_ratio", .title = "total new", SHARE("same for the new side")},
	[FUNCTIONS_BASE_SELF] = {.name = "base_self",
                                 .title = "self base",
                                 .type = TABLE_DOUBLE,
                                 .definition = "weight of the base's samples in which the function is innermost "
                                               "(ns, bytes or a count, see what), mean over the runs"},
	[FUNCTIONS_NEW_SELF] = {.name = "new_self",
                                .title = "self new",
                                .type = TABLE_DOUBLE,
                                .definition = "same for the new side"},
	[FUNCTIONS_BASE_TOTAL] = {.name = "base_total",
                                  .type = TABLE_DOUBLE,
                                  .definition = "weight of the base's samples with the function anywhere in the "
                                                "stack",
                                  .is_hidden = true},
	[FUNCTIONS_NEW_TOTAL] = {.name = "new_total",
                                 .type = TABLE_DOUBLE,
                                 .definition = "same for the new side",
                                 .is_hidden = true},
	[FUNCTIONS_IS_CERTAIN] = {.name = "is_certain",
                                  .title = "certain",
                                  .type = TABLE_BOOL,
                                  .definition = "whether the change of self exceeds the noise from run to run "
                                                "(Student's t at 95 %, Holm over the rows)"},
	[FUNCTIONS_NAME] = {.name = "function",
                            .type = TABLE_TEXT,
                            .role = ROLE_KEY,
                            .definition = "name of the function"},
	[FUNCTIONS_FILE] = {.name = "file",
                            .type = TABLE_TEXT,
                            .role = ROLE_KEY,
                            .definition = "file of the function; if it moved, its file on the new side"},
	[FUNCTIONS_WHAT] = {.name = "what",
                            .type = TABLE_TEXT,
                            .role = ROLE_KEY,
                            .definition = "unit of the samples: time (ns), bytes, samples, or the file's own name "
                                          "of a unit",
                            .is_hidden = true},
	[FUNCTIONS_NOTE] = {.name = "note",
                            .type = TABLE_TEXT,
                            .definition = "whether the function is only on one side, or is in another folder on the "
                                          "other side"},
};

/* ---- functions of all runs, each once ---- */

struct compared_seen {
	const struct compared_function *function;
	int side;
	size_t run;
};

struct compared_change {
	const struct compared_function *function; /* of the new side if it has the function */
	struct run_values shares;                 /* self shares */
	double self_ratio[SIDES], total_ratio[SIDES], self[SIDES], total[SIDES];
	bool is_on[SIDES], is_moved, is_gone;
	bool is_left_out[SIDES]; /* not kept for that side: in its COMPARED_OTHERS, or absent */
};

struct changes {
	const struct compared_sides *sides;
	struct arena arena;
	struct compared_change *rows;
	size_t count;
};

static int functions_compare_files(const char *left, const char *right)
{
	return strcmp(left ? left : "", right ? right : "");
}

static int compare_functions(const struct compared_function *a, const struct compared_function *b)
{
	int order = strcmp(a->what, b->what);

	order = order ? order : strcmp(a->name, b->name);
	return order ? order : functions_compare_files(a->file, b->file);
}

static int compare_seen(const void *left, const void *right)
{
	const struct compared_seen *a = left, *b = right;

	return compare_functions(a->function, b->function);
}

/* Returns true if a run of the side counts this quantity. Quantities of one side only, such as time, cannot be
 * compared. */
static bool has_what(const struct compared_sides *sides, int side, const char *what)
{
	for (size_t i = 0; i < sides->count[side]; i++)
		for (size_t f = 0; f < sides->runs[side][i].functions_count; f++)
			if (!strcmp(sides->runs[side][i].functions[f].what, what))
				return true;
	return false;
}

static size_t list_seen(struct compared_seen *list, const struct compared_sides *sides)
{
	size_t count = 0;

	for (int side = 0; side < SIDES; side++) {
		for (size_t i = 0; i < sides->count[side]; i++) {
			const struct compared_run *run = &sides->runs[side][i];
			const char *what = NULL;
			bool is_common = false;

			for (size_t f = 0; f < run->functions_count; f++) {
				if (!what || strcmp(what, run->functions[f].what) != 0) {
					what = run->functions[f].what;
					is_common = has_what(sides, !side, what);
				}
				if (is_common)
					list[count++] = (struct compared_seen){&run->functions[f], side, i};
			}
		}
	}
	return count;
}

static size_t count_seen(const struct compared_sides *sides)
{
	size_t count = 0;

	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			count += sides->runs[side][i].functions_count;
	return count;
}

static void add_seen(struct changes *changes, const struct compared_seen *seen)
{
	const struct compared_function *function = seen->function;
	double runs = (double)changes->sides->count[seen->side];
	bool is_new = !changes->count || compare_functions(changes->rows[changes->count - 1].function, function) != 0;
	struct compared_change *row;

	changes->count += is_new;
	row = &changes->rows[changes->count - 1];
	if (is_new) {
		*row = (struct compared_change){.function = function};
		run_values_init(&row->shares, changes->sides, &changes->arena);
	}
	row->shares.of[seen->side][seen->run] += function->self_ratio;
	row->self_ratio[seen->side] += function->self_ratio / runs;
	/* functions that differ only in an address may be in the same stack */
	row->total_ratio[seen->side] = fmin(1, row->total_ratio[seen->side] + function->total_ratio / runs);
	row->self[seen->side] += function->self / runs;
	row->total[seen->side] += function->total / runs;
	row->is_on[seen->side] = true;
}

static void changes_init(struct changes *changes, const struct compared_sides *sides)
{
	size_t most = count_seen(sides), count;
	struct compared_seen *list = memory_resize(NULL, most + 1, sizeof(*list));

	*changes = (struct changes){.sides = sides};
	arena_init(&changes->arena, 0);
	changes->rows = memory_resize(NULL, most + 1, sizeof(*changes->rows));
	count = list_seen(list, sides);
	merge_sort(list, count, sizeof(*list), compare_seen);
	for (size_t i = 0; i < count; i++)
		add_seen(changes, &list[i]);
	free(list);
}

static void changes_release(struct changes *changes)
{
	free(changes->rows);
	arena_release(&changes->arena);
}

/* ---- the same file in another folder ---- */

static const char *last_part(const char *file)
{
	const char *slash = file ? strrchr(file, '/') : NULL;

	return slash ? slash + 1 : file ? file : "";
}

static bool is_only_on(const struct compared_change *row, int side)
{
	return row->is_on[side] && !row->is_on[!side];
}

/* Returns the row that only this side has, if exactly one such row has a file of this name; otherwise NULL. */
static struct compared_change *find_only(struct compared_change *rows, size_t count, int side, const char *file)
{
	struct compared_change *found = NULL;

	for (size_t i = 0; i < count; i++) {
		if (!is_only_on(&rows[i], side) || strcmp(last_part(rows[i].function->file), last_part(file)) != 0)
			continue;
		if (found)
			return NULL;
		found = &rows[i];
	}
	return found;
}

static void functions_join(struct compared_change *base, struct compared_change *new)
{
	new->shares.of[SIDE_BASE] = base->shares.of[SIDE_BASE];
	new->self_ratio[SIDE_BASE] = base->self_ratio[SIDE_BASE];
	new->total_ratio[SIDE_BASE] = base->total_ratio[SIDE_BASE];
	new->self[SIDE_BASE] = base->self[SIDE_BASE];
	new->total[SIDE_BASE] = base->total[SIDE_BASE];
	new->is_on[SIDE_BASE] = new->is_moved = true;
	base->is_on[SIDE_BASE] = false;
	base->is_gone = true;
}

/* Joins rows of one function name: two checkouts of a program are in different folders. */
static void join_moved(struct compared_change *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *file = rows[i].function->file;
		struct compared_change *new;

		if (!is_only_on(&rows[i], SIDE_BASE) || find_only(rows, count, SIDE_BASE, file) != &rows[i])
			continue;
		new = find_only(rows, count, SIDE_NEW, file);
		if (new)
			functions_join(&rows[i], new);
	}
}

#define ALIKE 1000 /* largest number of rows of one name that are matched by file */

static void find_moved(struct changes *changes)
{
	size_t kept = 0;

	for (size_t first = 0, end; first < changes->count; first = end) {
		const struct compared_function *function = changes->rows[first].function;

		for (end = first + 1; end < changes->count &&
		                      !strcmp(changes->rows[end].function->name, function->name) &&
		                      !strcmp(changes->rows[end].function->what, function->what);)
			end++;
		if (end - first > 1 && end - first <= ALIKE)
			join_moved(&changes->rows[first], end - first);
	}
	for (size_t i = 0; i < changes->count; i++)
		if (!changes->rows[i].is_gone)
			changes->rows[kept++] = changes->rows[i];
	changes->count = kept;
}

/* ---- functions that were left out ---- */

static bool is_others(const struct compared_change *row)
{
	return !strcmp(row->function->name, COMPARED_OTHERS);
}

/* Expects rows that count the same quantity. */
static void mark_left_out(struct compared_change *rows, size_t count)
{
	const struct compared_change *others = NULL;

	for (size_t i = 0; i < count && !others; i++)
		others = is_others(&rows[i]) ? &rows[i] : NULL;
	for (size_t i = 0; i < count && others; i++)
		for (int side = 0; side < SIDES; side++)
			rows[i].is_left_out[side] = &rows[i] != others && !rows[i].is_on[side] && others->is_on[side];
}

static void find_left_out(struct changes *changes)
{
	for (size_t first = 0, end; first < changes->count; first = end) {
		const char *what = changes->rows[first].function->what;

		for (end = first + 1; end < changes->count && !strcmp(changes->rows[end].function->what, what);)
			end++;
		mark_left_out(&changes->rows[first], end - first);
	}
}

/* ---- rows ---- */

static double self_change(const struct compared_change *row)
{
	return row->self_ratio[SIDE_NEW] - row->self_ratio[SIDE_BASE];
}

static double total_change(const struct compared_change *row)
{
	return row->total_ratio[SIDE_NEW] - row->total_ratio[SIDE_BASE];
}

/* Sorts the largest change first, and equal changes by name. */
static int functions_compare_changes(const void *left, const void *right)
{
	const struct compared_change *a = left, *b = right;
	double ours = fabs(self_change(a)), theirs = fabs(self_change(b));

	if (ours > theirs || ours < theirs)
		return ours < theirs ? 1 : -1;
	ours = fabs(total_change(a)), theirs = fabs(total_change(b));
	if (ours > theirs || ours < theirs)
		return ours < theirs ? 1 : -1;
	return compare_functions(a->function, b->function);
}

static const char *note_of(const struct compared_change *row)
{
	if (is_others(row))
		return "sum of the functions with the smallest shares";
	if (row->is_left_out[SIDE_BASE])
		return "in the base, absent or one of the others";
	if (row->is_left_out[SIDE_NEW])
		return "on the new side, absent or one of the others";
	if (!row->is_on[SIDE_BASE])
		return "only on the new side";
	if (!row->is_on[SIDE_NEW])
		return "only in the base";
	return row->is_moved ? "in another folder" : NULL;
}

static void set_side(struct table *table, int row, int side, const struct compared_change *change)
{
	const struct {
		int column;
		double value, share; /* if positive, a value of 0 is one that does not fit in 64 bits */
	} cells[] = {{FUNCTIONS_BASE_SELF_RATIO + side, change->self_ratio[side], 0},
	             {FUNCTIONS_BASE_TOTAL_RATIO + side, change->total_ratio[side], 0},
	             {FUNCTIONS_BASE_SELF + side, change->self[side], change->self_ratio[side]},
	             {FUNCTIONS_BASE_TOTAL + side, change->total[side], change->total_ratio[side]}};

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		if (change->is_left_out[side])
			table_set_missing(table, row, cells[i].column, "absent, or one of the others");
		else if (cells[i].share > 0 && cells[i].value <= 0)
			table_set_missing(table, row, cells[i].column, "the value exceeds 64 bits");
		else
			table_set_double(table, row, cells[i].column, cells[i].value);
	}
}

static void functions_add_row(struct table *table, const struct compared_change *change)
{
	int row = table_row(table);

	table_set_double(table, row, FUNCTIONS_SELF_CHANGE, self_change(change));
	table_set_double(table, row, FUNCTIONS_TOTAL_CHANGE, total_change(change));
	for (int side = 0; side < SIDES; side++)
		set_side(table, row, side, change);
	if (change->is_left_out[SIDE_BASE] || change->is_left_out[SIDE_NEW])
		table_set_missing(table, row, FUNCTIONS_IS_CERTAIN, "one side is unknown");
	else
		run_values_set_certain(&change->shares, table, row, FUNCTIONS_IS_CERTAIN);
	table_set_text(table, row, FUNCTIONS_NAME, change->function->name);
	table_set_text_or(table, row, FUNCTIONS_FILE, change->function->file, "the frame has no file");
	table_set_text(table, row, FUNCTIONS_WHAT, change->function->what);
	table_set_text_or(table, row, FUNCTIONS_NOTE, note_of(change), "on both sides");
}

/* ---- the table ---- */

static enum table_unit functions_unit_of(const char *what)
{
	if (!strcmp(what, "time"))
		return UNIT_NS;
	return strcmp(what, "bytes") ? UNIT_COUNT : UNIT_BYTES;
}

/* Sets the unit if all samples count the same quantity. Otherwise numbers have no unit, and `what` names the
 * quantity. */
static void set_units(struct table *table, const struct changes *changes)
{
	const char *first = changes->count ? changes->rows[0].function->what : "";
	bool is_one = true;

	for (size_t i = 1; i < changes->count; i++)
		is_one &= !strcmp(changes->rows[i].function->what, first);
	for (int column = FUNCTIONS_BASE_SELF; column <= FUNCTIONS_NEW_TOTAL; column++)
		table->columns[column].unit = is_one ? functions_unit_of(first) : UNIT_NONE;
	table->columns[FUNCTIONS_WHAT].is_hidden = is_one;
}

#define POINTS                                                                                                            \
	"points: share of samples on the new side minus share in the base. If other functions take longer, the share of " \
	"an unchanged function falls"

static const char *note_of_rows(const struct changes *changes, struct arena *arena)
{
	bool has_others = false;

	for (size_t i = 0; i < changes->count; i++)
		has_others |= is_others(&changes->rows[i]);
	return !has_others ? POINTS
	                   : arena_printf(arena,
	                                  "%s; the comparison uses the %d functions with the largest shares of "
	                                  "each run",
	                                  POINTS, COMPARED_FUNCTIONS);
}

static const char *no_rows(const struct compared_sides *sides)
{
	bool has[SIDES] = {false};

	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			has[side] |= sides->runs[side][i].functions_count > 0;
	return has[SIDE_BASE] && has[SIDE_NEW] ? "the samples of the sides have different units: time, bytes or samples"
	                                       : "a side has no sampled stacks";
}

void comparison_add_functions(struct table *table, struct compared_sides *sides)
{
	struct changes changes;

	table_init(table, "functions", "Functions by the change of their share of samples",
	           "functions in the sampled stacks of both sides: their share of the samples, self and total");
	table_columns(table, columns, FUNCTIONS_COLUMNS);
	changes_init(&changes, sides);
	find_moved(&changes);
	find_left_out(&changes);
	run_values_test(&changes.rows[0].shares, sizeof(changes.rows[0]), changes.count, sides);
	set_units(table, &changes);
	qsort(changes.rows, changes.count, sizeof(*changes.rows), functions_compare_changes);
	for (size_t i = 0; i < changes.count; i++)
		functions_add_row(table, &changes.rows[i]);
	if (table->row_count)
		table->note = note_of_rows(&changes, &table->arena);
	else
		table->empty = no_rows(sides);
	changes_release(&changes);
}
