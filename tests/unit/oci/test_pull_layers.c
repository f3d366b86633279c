/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <osbx/lock.h>

#include "pull_fixture.h"

static void fault(const struct digest *d, enum mock_fault kind, size_t at)
{
	mock_fetch.fault_of = *d;
	mock_fetch.fault = kind;
	mock_fetch.fault_at = at;
}

START_TEST(a_layer_of_other_bytes)
{
	struct made m = serve("1", "x", 3);

	fault(&m.layers[1], MOCK_FAULT_CORRUPT, 4);
	pull_fails(REG "/a:1", ERRC_INVALID, m.layers[1].text);
	pull_fails(REG "/a:1", ERRC_INVALID, REG "/a: blob");
	is_absent(REG "/a:1");
	/* Twice it was the registry's, nothing was gone on with. */
	ck_assert_uint_eq(mock_fetch.started, 2);
	ck_assert_int_eq(part_bytes(&m.layers[1]), -1);
	/* The others need not come again. */
	ck_assert_int_gt(part_bytes(&m.layers[0]), 0);
	mock_fetch.fault = MOCK_FAULT_NONE;
	mock_fetch.bytes = 0;
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	is_complete(&m);
	ck_assert_uint_eq(mock_fetch.bytes,
			strlen(blob_text(&m.config)) + strlen(blob_text(&m.layers[1])));
}
END_TEST

START_TEST(a_layer_that_ends_early)
{
	struct made m = serve("1", "x", 3);

	fault(&m.layers[1], MOCK_FAULT_CUT, 5);
	pull_fails(REG "/a:1", ERRC_UNAVAILABLE, REG ": connection lost");
	ck_assert_int_eq(part_bytes(&m.layers[1]), 5);
	is_absent(REG "/a:1");
	mock_fetch.fault = MOCK_FAULT_NONE;
	mock_fetch.bytes = 0;
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	is_complete(&m);
}
END_TEST

/* The unpacker was faster than the news. */
START_TEST(the_registrys_error_wins)
{
	struct made m = serve("1", "x", 3);

	fault(&m.layers[0], MOCK_FAULT_CUT, 5);
	mock_fetch.is_late = true;
	pull_fails(REG "/a:1", ERRC_UNAVAILABLE, REG ": connection lost");
	ck_assert_int_eq(part_bytes(&m.layers[0]), 5);
}
END_TEST

START_TEST(only_the_rest_is_fetched)
{
	struct made m = serve("1", "x", 2);
	const char *bytes = blob_text(&m.layers[1]);

	part_put(&m.layers[0], "the lowest ", 11);
	part_put(&m.layers[1], bytes, strlen(bytes));
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	is_complete(&m);
	/* "layer" of the one, nothing of the other; and the configuration. */
	ck_assert_uint_eq(mock_fetch.bytes, 5 + strlen(blob_text(&m.config)));
}
END_TEST

START_TEST(what_was_left_may_be_wrong)
{
	struct made m = serve("1", "x", 2);

	part_put(&m.layers[1], "garbage", 7);
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	is_complete(&m);
	ck_assert_uint_eq(mock_fetch.started, 2);
}
END_TEST

START_TEST(one_blob_in_two_layers)
{
	struct made m = { .layers_n = 3 };
	const size_t sizes[] = { 4, 5, 4 };
	autofree char *text = NULL;
	autofree char *manifest = NULL;

	m.layers[0] = put_blob(mock_fetch.layout_fd, "same");
	m.layers[1] = put_blob(mock_fetch.layout_fd, "other");
	m.layers[2] = m.layers[0];
	text = config_text("amd64", "x", &m);
	m.config = put_blob(mock_fetch.layout_fd, text);
	manifest = manifest_text(&m, strlen(text), sizes);
	m.manifest = put_blob(mock_fetch.layout_fd, manifest);
	tag_new(REG, "1")->text = manifest;
	mock_fetch.bytes = 0;
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	is_complete(&m);
	ck_assert_uint_eq(mock_unpack.made, 3);
	ck_assert_uint_eq(mock_fetch.bytes, 9 + strlen(text));
	mock_fetch.tags[0].name = NULL;
}
END_TEST

static void wait_ms(long ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* A process that downloads a blob: it holds the part file, and then does something. */
static pid_t other_process(const struct digest *d, void (*then)(int fd, const struct digest *d))
{
	autofree char *path = part_path(d);
	int fd = -1;
	pid_t pid = 0;

	part_put(d, "", 0);
	fd = lock_open_at(store_root_fd(store), path, LOCK_MODE_EXCLUSIVE);
	ck_assert_int_ge(fd, 0);
	pid = fork();
	if (pid == 0) {
		wait_ms(300);
		then(fd, d);
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	(void)close(fd);
	return pid;
}

static void finishes(int fd, const struct digest *d)
{
	const char *bytes = blob_text(d);

	if (write(fd, bytes, strlen(bytes)) < 0) {
		_exit(1);
	}
}

static void publishes(int fd, const struct digest *d)
{
	autofree char *path = part_path(d);

	finishes(fd, d);
	if (store_blob_publish(store, store_root_fd(store), path, d) < 0) {
		_exit(1);
	}
}

static void dies(int fd, const struct digest *d)
{
	(void)d;
	if (write(fd, "the ", 4) < 0) {
		_exit(1);
	}
	(void)kill(getpid(), SIGKILL);
}

static void garbles(int fd, const struct digest *d)
{
	(void)d;
	if (write(fd, "THE LOWEST LAYER", 16) < 0) {
		_exit(1);
	}
}

struct shared {
	void (*then)(int fd, const struct digest *d);
	size_t bytes; /* of the layer that we fetch ourselves */
	size_t started;
};

static const struct shared shared[] = {
	{ finishes, 0, 1 },
	{ publishes, 0, 1 },
	{ dies, 12, 1 },
	{ garbles, 16, 2 },
};

START_TEST(two_pulls_share_a_download)
{
	struct made m = serve("1", "x", 2);
	pid_t pid = other_process(&m.layers[0], shared[_i].then);
	size_t others = strlen(blob_text(&m.config)) + strlen(blob_text(&m.layers[1]));
	int status = 0;

	ck_assert(pull(REG "/a:1", REG "/a:1"));
	is_complete(&m);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	ck_assert_uint_eq(mock_fetch.started, shared[_i].started);
	/* A second start has the configuration in memory no more. */
	others += (shared[_i].started - 1) * strlen(blob_text(&m.config));
	ck_assert_uint_eq(mock_fetch.bytes, others + shared[_i].bytes);
}
END_TEST

static volatile sig_atomic_t signals_n;

static void on_term(int signo)
{
	(void)signo;
	signals_n++;
}

static pid_t signal_soon(int signo)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid == 0) {
		wait_ms(200);
		(void)kill(parent, signo);
		_exit(0);
	}
	return pid;
}

/* While another process holds a layer, a pull that waits can be ended. */
START_TEST(a_signal_ends_it)
{
	const struct sigaction sa = { .sa_handler = on_term };
	struct made m = serve("1", "x", 2);
	autofree char *path = part_path(&m.layers[1]);
	int lock = -1;
	pid_t pid = 0;

	ck_assert_int_eq(sigaction(SIGTERM, &sa, NULL), 0);
	part_put(&m.layers[1], "", 0);
	lock = lock_open_at(store_root_fd(store), path, LOCK_MODE_EXCLUSIVE);
	ck_assert_int_ge(lock, 0);
	pid = signal_soon(SIGTERM);
	pull_fails(REG "/a:1", ERRC_UNAVAILABLE, "interrupted");
	ck_assert_int_eq(signals_n, 1);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	/* What came stays, and nothing else. */
	ck_assert_int_gt(part_bytes(&m.layers[0]), 0);
	(void)close(lock);
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	is_complete(&m);
}
END_TEST

START_TEST(an_ignored_signal_does_not)
{
	const struct sigaction sa = { .sa_handler = SIG_IGN };
	struct made m = serve("1", "x", 2);
	pid_t pid = 0;
	pid_t other = 0;

	ck_assert_int_eq(sigaction(SIGHUP, &sa, NULL), 0);
	other = other_process(&m.layers[0], finishes);
	pid = signal_soon(SIGHUP);
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(waitpid(other, NULL, 0), other);
}
END_TEST

struct seen {
	enum image_phase last[FIXTURE_LAYERS];
	uint64_t fetched[FIXTURE_LAYERS];
};

static void on_layer(void *ctx, size_t i, const struct image_layer *layer, enum image_phase phase,
		uint64_t done, uint64_t total)
{
	struct seen *seen = ctx;

	ck_assert_uint_lt(i, FIXTURE_LAYERS);
	ck_assert_uint_eq(total, layer->size);
	seen->last[i] = phase;
	if (phase == IMAGE_PHASE_FETCHING) {
		seen->fetched[i] = done;
	}
}

START_TEST(progress_is_told)
{
	struct seen seen = { .fetched = { 0 } };
	const struct image_progress progress = { .on_layer = on_layer, .ctx = &seen };
	struct made m = serve("1", "x", 3);

	opts.image.progress = &progress;
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	for (size_t i = 0; i < m.layers_n; i++) {
		ck_assert_uint_eq(seen.fetched[i], strlen(blob_text(&m.layers[i])));
	}
	ck_assert(!pull(REG "/a:1", REG "/a:1"));
	ck_assert_int_eq(seen.last[2], IMAGE_PHASE_PRESENT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pull_layers");
	TCase *tc = tcase_create("pull_layers");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_layer_of_other_bytes);
	tcase_add_test(tc, a_layer_that_ends_early);
	tcase_add_test(tc, the_registrys_error_wins);
	tcase_add_test(tc, only_the_rest_is_fetched);
	tcase_add_test(tc, what_was_left_may_be_wrong);
	tcase_add_test(tc, one_blob_in_two_layers);
	tcase_add_loop_test(tc, two_pulls_share_a_download, 0, (int)ARRAY_SIZE(shared));
	tcase_add_test(tc, a_signal_ends_it);
	tcase_add_test(tc, an_ignored_signal_does_not);
	tcase_add_test(tc, progress_is_told);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
