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

#define BAR_CELLS    28
#define DIGEST_SHOWN 12
#define REDRAW_MS    80

struct row {
	char digest[DIGEST_SHOWN + 1];
	enum image_phase phase;
	uint64_t done;
	uint64_t total;
};

struct progress {
	struct image_progress callbacks;
	bool quiet;
	bool bars;
	size_t rows_n;
	size_t drawn_n; /* lines on the screen that belong to us */
	int64_t drawn_ms;
	int64_t start_ms;
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

static void row_draw(const struct row *row, struct buf *out)
{
	char bar[BAR_CELLS + 1];
	char done[24];
	char total[24];
	uint64_t part = row->total ? row->done * BAR_CELLS / row->total : BAR_CELLS;
	size_t filled = part > BAR_CELLS ? BAR_CELLS : (size_t)part;

	memset(bar, '=', filled);
	memset(bar + filled, ' ', BAR_CELLS - filled);
	bar[BAR_CELLS] = '\0';
	str_from_size(row->done, done, sizeof(done));
	str_from_size(row->total, total, sizeof(total));
	(void)!buf_appendf(out, "\r\033[K%s %-9s [%s] %s / %s\n", row->digest,
			phase_names[row->phase], bar, done, total);
}

static void progress_draw(struct progress *p)
{
	AUTO(buf) struct buf out = BUF_INIT(1U << 16);

	if (p->drawn_n > 0) {
		(void)!buf_appendf(&out, "\033[%zuA", p->drawn_n);
	}
	for (size_t i = 0; i < p->rows_n; i++) {
		row_draw(&p->rows[i], &out);
	}
	p->drawn_n = p->rows_n;
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
	row->phase = phase;
	row->done = done;
	row->total = total;
	if (!p->bars) {
		if (changed && (phase == IMAGE_PHASE_DONE || phase == IMAGE_PHASE_PRESENT)) {
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
