/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_probe [options] ping NAME | manifest NAME | blobs NAME DIR [DIGEST SIZE]...
 *
 * The registry client alone, for the integration scripts: what the helper says, line by line.
 *   ping      "pong"
 *   manifest  "manifest TYPE CLAIMED-DIGEST ACTUAL-DIGEST"; the bytes go to -o FILE
 *   blobs     without digests those of the manifest of NAME; parts are DIR/HEX; each ends with
 *             "done HEX BYTES RESUMED PIPE-DIGEST" or "failed HEX BYTES CLASS TEXT | HINT"
 *   -u USER:PASSWORD   -i IDENTITY-TOKEN   -k (no verification)   -v (verification whatever is
 *   configured)   -c CA-FILE   -m MIRROR   -f (short times)   -d (debug)   -o FILE
 *   -n (no pipes)   -s BYTES (read the first pipe that slowly a second)   -x BYTES (close it then)
 * Any other failure ends in "error CLASS TEXT | HINT" and status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/digest.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/secfilter.h>
#include <osbx/str.h>

#include "../../oci/auth.h"
#include "../../oci/fetch.h"
#include "../../oci/fetch_setup.h"
#include "../../oci/manifest.h"

#define READ_BYTES 65536
#define TICK_MS    20

struct probe {
	struct registry_host host;
	struct registry_config config;
	struct pull_opts opts;
	struct credential credential;
	bool fast;
	bool no_pipes;
	uint64_t slow;
	uint64_t close_at;
	const char *out;
	struct ref ref;
	struct fetch *fetch;
};

struct part {
	struct digest digest;
	uint64_t size;
	int out_fd; /* our end of the pipe */
	uint64_t got;
	struct digest_hash *hash;
	bool ended;
	struct fetch_event last;
};

static struct part parts[LIMIT_LAYERS + 1];
static uint32_t parts_n;

static int fail(const struct error *e)
{
	char text[ERROR_TEXT_MAX + 64];

	error_render(e, text, sizeof(text));
	printf("error %s %s | %s\n", error_name(e->code), text, e->hint);
	return EXIT_FAILURE;
}

static struct fetch *start(struct probe *p, struct error *e)
{
	AUTO(fetch_setup) struct fetch_setup setup = FETCH_SETUP_INIT;

	p->host.host = p->ref.domain;
	p->config = (struct registry_config){ .hosts_n = 1, .hosts = &p->host };
	p->opts.config = &p->config;
	if (fetch_setup_make(&p->ref, &p->opts, &p->credential, &setup, e) < 0) {
		return NULL;
	}
	if (p->fast) {
		setup.timing.connect_ms = 2000;
		setup.timing.probe_ms = 1000;
		setup.timing.stall_s = 2;
		setup.timing.small_ms = 4000;
		setup.timing.backoff_min_ms = 20;
		setup.timing.backoff_max_ms = 200;
		setup.timing.retry_after_max_ms = 3000;
	}
	return fetch_start_setup(&setup, e);
}

static int get_manifest(struct probe *p, struct buf *body, char **type, struct error *e)
{
	struct digest claimed = { "" };
	struct digest actual = { "" };
	const char *name = p->ref.digest.text[0] ? p->ref.digest.text : p->ref.tag;

	if (fetch_manifest(p->fetch, name, body, type, &claimed, e) < 0 ||
			digest_of(buf_span(body), &actual, e) < 0) {
		return -1;
	}
	printf("manifest %s %s %s\n", *type, claimed.text[0] ? claimed.text : "-", actual.text);
	if (p->out && file_write_at(AT_FDCWD, p->out, buf_span(body), false) < 0) {
		return error_set(e, ERRC_SYSTEM, "write %s", p->out);
	}
	return 0;
}

static void part_add(const struct digest *digest, uint64_t size)
{
	if (parts_n < ARRAY_SIZE(parts)) {
		parts[parts_n++] = (struct part){ .digest = *digest, .size = size, .out_fd = -1 };
	}
}

static int parts_of_manifest(struct probe *p, struct error *e)
{
	AUTO(buf) struct buf body = BUF_INIT(LIMIT_MANIFEST_BYTES);
	AUTO(manifest) struct manifest m = MANIFEST_INIT;
	autofree char *type = NULL;

	if (get_manifest(p, &body, &type, e) < 0 ||
			manifest_parse(buf_span(&body), type, &m, e) < 0) {
		return -1;
	}
	part_add(&m.config.digest, m.config.size);
	for (size_t i = 0; i < m.layers.n; i++) {
		part_add(&m.layers.v[i].digest, m.layers.v[i].size);
	}
	return 0;
}

static int part_begin(struct probe *p, int dir_fd, uint32_t i, struct error *e)
{
	struct part *part = &parts[i];
	autoclose int fd = fd_open_at(dir_fd, digest_hex(&part->digest), O_RDWR | O_CREAT, 0600);
	int pair[2] = { -1, -1 };
	autoclose int theirs = -1;

	if (fd < 0 || (!p->no_pipes && fd_pipe(pair, 0) < 0)) {
		return error_set(e, ERRC_SYSTEM, "open part");
	}
	part->out_fd = pair[0];
	theirs = pair[1];
	part->hash = digest_hash_new(e);
	if (!part->hash) {
		return -1;
	}
	struct fetch_blob blob = {
		.tag = i,
		.digest = part->digest,
		.size = part->size,
		.part_fd = fd,
		.out_fd = theirs,
	};

	return fetch_blob_begin(p->fetch, &blob, e);
}

static void part_end(struct part *part)
{
	struct digest got = { "-" };
	const struct fetch_event *last = &part->last;
	char text[ERROR_TEXT_MAX + 64];

	if (part->hash && part->out_fd < 0) {
		digest_hash_end(part->hash, &got);
	}
	if (last->kind == FETCH_EVENT_DONE) {
		printf("done %s %llu %llu %s\n", digest_hex(&part->digest),
				(unsigned long long)last->done, (unsigned long long)last->resumed,
				got.text);
	} else {
		error_render(&last->error, text, sizeof(text));
		printf("failed %s %llu %s %s | %s\n", digest_hex(&part->digest),
				(unsigned long long)last->done, error_name(last->error.code), text,
				last->error.hint);
	}
}

/* Read what a pipe has; slowly or not to the end if so wished of the first. */
static void part_read(const struct probe *p, struct part *part)
{
	static char bytes[READ_BYTES];
	uint64_t max = part == parts && p->slow ? p->slow * TICK_MS / 1000 : sizeof(bytes);
	ssize_t n = fd_read(part->out_fd, bytes, max > sizeof(bytes) ? sizeof(bytes) : max);

	if (n > 0) {
		digest_hash_add(part->hash, bytes, (size_t)n);
		part->got += (uint64_t)n;
	}
	if (n <= 0 || (part == parts && p->close_at && part->got >= p->close_at)) {
		fd_close(&part->out_fd);
	}
}

static bool parts_wait(const struct probe *p)
{
	struct pollfd fds[ARRAY_SIZE(parts) + 1];
	bool open = false;

	for (uint32_t i = 0; i < parts_n; i++) {
		fds[i] = (struct pollfd){ .fd = parts[i].out_fd, .events = POLLIN };
		open |= !parts[i].ended || parts[i].out_fd >= 0;
	}
	fds[parts_n] = (struct pollfd){ .fd = fetch_fd(p->fetch), .events = POLLIN };
	if (!open) {
		return false;
	}
	(void)poll(fds, parts_n + 1, 1000);
	if (p->slow) {
		(void)usleep(TICK_MS * 1000);
	}
	for (uint32_t i = 0; i < parts_n; i++) {
		if (fds[i].fd >= 0 && fds[i].revents) {
			part_read(p, &parts[i]);
		}
	}
	return true;
}

static int parts_run(struct probe *p, struct error *e)
{
	bool failed = false;

	while (parts_wait(p)) {
		struct fetch_event event;
		int rc = fetch_next(p->fetch, &event, 0, e);

		if (rc < 0) {
			return -1;
		}
		if (rc > 0 && event.kind != FETCH_EVENT_PROGRESS) {
			parts[event.tag].last = event;
			parts[event.tag].ended = true;
			failed |= event.kind == FETCH_EVENT_FAILED;
		}
	}
	for (uint32_t i = 0; i < parts_n; i++) {
		part_end(&parts[i]);
	}
	return failed ? error_set(e, ERRC_UNAVAILABLE, "not all blobs came") : 0;
}

static int run_blobs(struct probe *p, char **args, struct error *e)
{
	autoclose int dir_fd = args[0] ? fd_open(args[0], O_RDONLY | O_DIRECTORY, 0) : -1;

	if (dir_fd < 0) {
		return error_set(e, ERRC_INVALID, "no directory for parts");
	}
	for (args++; args[0] && args[1]; args += 2) {
		struct digest digest = { "" };
		uint64_t size = 0;

		if (digest_parse(args[0], &digest) < 0 ||
				str_to_u64(args[1], UINT64_MAX, &size) < 0) {
			return error_set(e, ERRC_INVALID, "not a digest and size");
		}
		part_add(&digest, size);
	}
	if (parts_n == 0 && parts_of_manifest(p, e) < 0) {
		return -1;
	}
	for (uint32_t i = 0; i < parts_n; i++) {
		if (part_begin(p, dir_fd, i, e) < 0) {
			return -1;
		}
	}
	return parts_run(p, e);
}

static int run_manifest(struct probe *p, char **args, struct error *e)
{
	AUTO(buf) struct buf body = BUF_INIT(LIMIT_MANIFEST_BYTES);
	autofree char *type = NULL;

	(void)args;
	return get_manifest(p, &body, &type, e);
}

static int run_ping(struct probe *p, char **args, struct error *e)
{
	(void)args;
	if (fetch_ping(p->fetch, e) < 0) {
		return -1;
	}
	printf("pong\n");
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct probe *p, char **args, struct error *e);
} commands[] = { { "ping", run_ping }, { "manifest", run_manifest }, { "blobs", run_blobs } };

static void credential_take(struct probe *p, char *text)
{
	char *colon = strchr(text, ':');

	if (colon) {
		p->credential.user = mem_dup(text, (size_t)(colon - text));
		p->credential.password = mem_strdup(colon + 1);
	}
}

static void number_take(const char *text, uint64_t *out)
{
	if (str_to_u64(text, UINT64_MAX, out) < 0) {
		*out = 0;
	}
}

static void option_take(struct probe *p, int option, char *value)
{
	switch (option) {
	case 'u':
		credential_take(p, value);
		break;
	case 'i':
		p->credential.user = mem_strdup("<token>");
		p->credential.identity_token = mem_strdup(value);
		break;
	case 'k':
	case 'v':
		p->opts.tls_verify = option == 'v';
		break;
	case 'c':
		p->host.ca_file = value;
		break;
	case 'm':
		if (strv_add(&p->host.mirrors, value) < 0) {
			abort();
		}
		break;
	case 's':
		number_take(value, &p->slow);
		break;
	case 'x':
		number_take(value, &p->close_at);
		break;
	case 'o':
		p->out = value;
		break;
	case 'f':
		p->fast = true;
		break;
	case 'n':
		p->no_pipes = true;
		break;
	default:
		log_set_level(LOG_LEVEL_DEBUG);
	}
}

static int run(struct probe *p, char **args, struct error *e)
{
	if (!args[0] || !args[1] || ref_parse(args[1], &p->ref, e) < 0) {
		return args[0] && args[1] ? -1 : error_set(e, ERRC_INVALID, "usage");
	}
	p->fetch = start(p, e);
	if (!p->fetch) {
		return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (str_eq(args[0], commands[i].name)) {
			return commands[i].run(p, args + 2, e);
		}
	}
	return error_set(e, ERRC_INVALID, "unknown command");
}

static int helper(int argc, char **argv)
{
	struct secfilter filter = { .n = 0 };

	secfilter_builtin(SECFILTER_FETCH, &filter);
	fetch_set_filter(filter.insns, filter.n);
	return fetch_main(argc, argv);
}

int main(int argc, char **argv)
{
	struct probe p = { .opts.tls_verify = -1, .host.tls_verify = true, .ref = REF_INIT };
	struct error e = ERROR_INIT;
	int status = EXIT_SUCCESS;

	if (argc == 2 && str_eq(argv[1], "fetch")) {
		return helper(argc, argv);
	}
	for (int c = getopt(argc, argv, "u:i:kvc:m:fdo:ns:x:"); c != -1;
			c = getopt(argc, argv, "u:i:kvc:m:fdo:ns:x:")) {
		option_take(&p, c, optarg);
	}
	if (run(&p, argv + optind, &e) < 0) {
		status = fail(&e);
	}
	fetch_stop(p.fetch);
	for (uint32_t i = 0; i < parts_n; i++) {
		digest_hash_free(parts[i].hash);
		fd_close(&parts[i].out_fd);
	}
	credential_done(&p.credential);
	strv_done(&p.host.mirrors);
	ref_done(&p.ref);
	return status;
}
