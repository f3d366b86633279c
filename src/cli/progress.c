/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/tty.h>

#include "progress.h"

#define BAR_CELLS_MAX  28
#define BAR_CELLS_MIN  4
#define LINE_CELLS     54 /* of a line, without its bar */
#define DIGEST_SHOWN   12
#define REDRAW_MS      80
#define RATE_SAMPLES   8
#define RATE_SAMPLE_MS 400
#define LINES_DEFAULT  24
#define CELLS_DEFAULT  80

struct row {
	char digest[DIGEST_SHOWN + 1];
	enum image_phase phase;
	bool is_fetched; /* it comes from a registry */
	uint64_t done;
	uint64_t total;
};

/* Bytes that had come at a moment. */
struct sample {
	int64_t ms;
	uint64_t bytes;
};

struct progress {
	struct image_progress callbacks;
	bool quiet;
	bool bars;
	size_t rows_n;
	size_t drawn_n; /* lines on the screen that belong to us */
	int64_t drawn_ms;
	int64_t start_ms;
	uint64_t fetched; /* bytes that came from registries since the start */
	struct sample samples[RATE_SAMPLES];
	size_t samples_n; /* ever taken */
	struct row rows[LIMIT_LAYERS];
};

static const char *const phase_names[] = {
	[IMAGE_PHASE_WAITING] = "waiting",
	[IMAGE_PHASE_FETCHING] = "fetching",
	[IMAGE_PHASE_COPYING] = "unpacking",
	[IMAGE_PHASE_LINKING] = "linking",
	[IMAGE_PHASE_DONE] = "done",
	[IMAGE_PHASE_PRESENT] = "present",
};
_Static_assert(ARRAY_SIZE(phase_names) == IMAGE_PHASE_COUNT, "every phase has a name");

static size_t bar_cells(void)
{
	struct winsize ws = { .ws_col = 0 };
	size_t cells = tty_size(STDERR_FILENO, &ws) == 0 && ws.ws_col > 0 ? ws.ws_col
									  : CELLS_DEFAULT;

	if (cells < LINE_CELLS + BAR_CELLS_MIN) {
		return BAR_CELLS_MIN;
	}
	cells -= LINE_CELLS;
	return cells > BAR_CELLS_MAX ? BAR_CELLS_MAX : cells;
}

/* The drawing functions give 0, or -EMSGSIZE: then nothing is drawn. */
static int bar_draw(
		const char *label, const char *what, uint64_t done, uint64_t total, struct buf *out)
{
	char bar[BAR_CELLS_MAX + 1];
	char done_text[24];
	char total_text[24];
	size_t cells = bar_cells();
	uint64_t part = total ? done * cells / total : cells;
	size_t filled = part > cells ? cells : (size_t)part;

	memset(bar, '=', filled);
	memset(bar + filled, ' ', cells - filled);
	bar[cells] = '\0';
	str_from_size(done, done_text, sizeof(done_text));
	str_from_size(total, total_text, sizeof(total_text));
	return buf_appendf(out, "\r\033[K%-12s %-9s [%s] %s / %s", label, what, bar, done_text,
			total_text);
}

static bool is_over(const struct row *row)
{
	return row->phase == IMAGE_PHASE_DONE || row->phase == IMAGE_PHASE_PRESENT;
}

/* Bytes of a second, over the last few; 0 when there is nothing to tell yet. */
static uint64_t rate(const struct progress *p)
{
	size_t n = p->samples_n < RATE_SAMPLES ? p->samples_n : RATE_SAMPLES;
	const struct sample *last = NULL;
	const struct sample *first = NULL;

	if (n < 2) {
		return 0;
	}
	last = &p->samples[(p->samples_n - 1) % RATE_SAMPLES];
	first = &p->samples[(p->samples_n - n) % RATE_SAMPLES];
	return last->ms > first->ms ? (last->bytes - first->bytes) * 1000 /
						      (uint64_t)(last->ms - first->ms)
				    : 0;
}

static int total_draw(const struct progress *p, struct buf *out)
{
	uint64_t done = 0;
	uint64_t total = 0;
	size_t over = 0;
	char what[48];
	char speed[24];

	for (size_t i = 0; i < p->rows_n; i++) {
		const struct row *row = &p->rows[i];
		/* What is fetched is what takes time. */
		bool is_here = row->phase != IMAGE_PHASE_FETCHING &&
			       row->phase != IMAGE_PHASE_WAITING &&
			       (row->is_fetched || row->phase != IMAGE_PHASE_COPYING);

		done += is_here ? row->total : row->done;
		total += row->total;
		over += is_over(row) ? 1 : 0;
	}
	(void)snprintf(what, sizeof(what), "%zu of %zu", over, p->rows_n);
	int r = bar_draw("total", what, done, total, out);

	if (r == 0 && rate(p) > 0 && over < p->rows_n) {
		str_from_size(rate(p), speed, sizeof(speed));
		r = buf_appendf(out, "  %s/s", speed);
	}
	return r < 0 ? r : buf_append_str(out, "\n");
}

/* Lines of layers that fit above the one of the total. */
static size_t lines_max(void)
{
	struct winsize ws = { .ws_row = 0 };
	size_t lines = tty_size(STDERR_FILENO, &ws) == 0 && ws.ws_row > 0 ? ws.ws_row
									  : LINES_DEFAULT;

	return lines > 3 ? lines - 2 : 1;
}

/* Where not all fit, those are left out that are over. */
static bool is_shown(const struct progress *p, size_t i, size_t max)
{
	return p->rows_n <= max || !is_over(&p->rows[i]);
}

/* *lines: how many it takes. */
static int lines_draw(const struct progress *p, struct buf *out, size_t *lines)
{
	size_t max = lines_max();
	size_t n = 0;
	int r = p->drawn_n > 0 ? buf_appendf(out, "\033[%zuA", p->drawn_n) : 0;

	for (size_t i = 0; r == 0 && i < p->rows_n && n < max; i++) {
		const struct row *row = &p->rows[i];

		if (is_shown(p, i, max)) {
			r = bar_draw(row->digest, phase_names[row->phase], row->done, row->total,
					out);
			r = r < 0 ? r : buf_append_str(out, "\n");
			n++;
		}
	}
	if (r == 0 && p->rows_n > 1) {
		r = total_draw(p, out);
		n++;
	}
	*lines = n;
	/* Behind them were some that are not needed any more. */
	return r < 0 ? r : buf_append_str(out, "\033[J");
}

static void progress_draw(struct progress *p)
{
	AUTO(buf) struct buf out = BUF_INIT(1U << 16);
	size_t lines = 0;

	if (lines_draw(p, &out, &lines) < 0) {
		return;
	}
	p->drawn_n = lines;
	p->drawn_ms = clock_boot_ms();

	struct span text = buf_span(&out);

	(void)!fd_write_all(STDERR_FILENO, text.p, text.n);
}

static void row_print(const struct row *row, int64_t start_ms)
{
	AUTO(buf) struct buf out = BUF_INIT(256);
	char total[24];
	int64_t ms = clock_boot_ms() - start_ms;

	str_from_size(row->total, total, sizeof(total));
	if (buf_appendf(&out, "layer %s: %s, %s, %lld.%01lld s\n", row->digest,
			    phase_names[row->phase], total, (long long)(ms / 1000),
			    (long long)(ms % 1000 / 100)) == 0) {
		struct span text = buf_span(&out);

		(void)!fd_write_all(STDERR_FILENO, text.p, text.n);
	}
}

/* What an earlier pull left is there at the first word about a layer, and does not count. */
static void fetched_add(struct progress *p, const struct row *row, uint64_t done)
{
	int64_t now = clock_boot_ms();
	const struct sample *last = &p->samples[(p->samples_n + RATE_SAMPLES - 1) % RATE_SAMPLES];

	if (row->is_fetched && done > row->done) {
		p->fetched += done - row->done;
	}
	if (p->samples_n == 0 || now - last->ms >= RATE_SAMPLE_MS) {
		p->samples[p->samples_n++ % RATE_SAMPLES] =
				(struct sample){ .ms = now, .bytes = p->fetched };
	}
}

static void on_layer(void *ctx, size_t index, const struct image_layer *layer,
		enum image_phase phase, uint64_t done, uint64_t total)
{
	struct progress *p = ctx;

	if (p->quiet || index >= LIMIT_LAYERS) {
		return;
	}
	struct row *row = &p->rows[index];
	bool changed = index >= p->rows_n || row->phase != phase;

	for (; p->rows_n <= index; p->rows_n++) {
		p->rows[p->rows_n] = (struct row){ .phase = IMAGE_PHASE_WAITING };
	}
	memcpy(row->digest, digest_hex(&layer->blob), DIGEST_SHOWN);
	if (phase == IMAGE_PHASE_FETCHING) {
		fetched_add(p, row, done);
		row->is_fetched = true;
	}
	row->phase = phase;
	row->done = done;
	row->total = total;
	if (!p->bars) {
		if (changed && is_over(row)) {
			row_print(row, p->start_ms);
		}
	} else if (changed || clock_boot_ms() - p->drawn_ms >= REDRAW_MS) {
		progress_draw(p);
	}
}

struct progress *progress_new(bool quiet)
{
	struct progress *p = mem_new(struct progress);

	p->quiet = quiet;
	p->bars = tty_has_colour(STDERR_FILENO);
	p->start_ms = clock_boot_ms();
	p->callbacks = (struct image_progress){ .on_layer = on_layer, .ctx = p };
	return p;
}

const struct image_progress *progress_callbacks(struct progress *p)
{
	return &p->callbacks;
}

void progress_free(struct progress *p)
{
	if (p && p->bars && p->drawn_n > 0) {
		progress_draw(p);
	}
	free(p);
}
