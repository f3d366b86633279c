/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper that asks systemd for a scope, over D-Bus by libsystemd, which is loaded here. Its
 * types are opaque, so that no headers of it are needed to build.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/scope.h>
#include <osbx/str.h>

#define MANAGER_NAME      "org.freedesktop.systemd1"
#define MANAGER_PATH      "/org/freedesktop/systemd1"
#define MANAGER_INTERFACE "org.freedesktop.systemd1.Manager"
#define JOB_MS            8000

/* As in sd-bus.h. */
struct bus_error {
	const char *name;
	const char *message;
	int need_free;
};

typedef int (*match_fn)(void *m, void *userdata, struct bus_error *error);

struct library {
	int (*open_system)(void **out_bus);
	int (*open_user)(void **out_bus);
	int (*create)(void **out_bus);
	int (*set_address)(void *bus, const char *address);
	int (*start)(void *bus);
	void *(*close)(void *bus);
	int (*match_signal)(void *bus, void **out_slot, const char *sender, const char *path,
			const char *interface, const char *member, match_fn fn, void *userdata);
	int (*new_call)(void *bus, void **out_m, const char *destination, const char *path,
			const char *interface, const char *member);
	int (*append)(void *m, const char *types, ...);
	int (*open)(void *m, char type, const char *contents);
	int (*shut)(void *m);
	int (*call)(void *bus, void *m, uint64_t usec, struct bus_error *error, void **out_reply);
	int (*read)(void *m, const char *types, ...);
	void *(*unref)(void *m);
	int (*process)(void *bus, void **out_m);
	int (*wait)(void *bus, uint64_t usec);
};

static const struct {
	const char *name;
	size_t offset;
} symbols[] = {
	{ "sd_bus_open_system", offsetof(struct library, open_system) },
	{ "sd_bus_open_user", offsetof(struct library, open_user) },
	{ "sd_bus_new", offsetof(struct library, create) },
	{ "sd_bus_set_address", offsetof(struct library, set_address) },
	{ "sd_bus_start", offsetof(struct library, start) },
	{ "sd_bus_flush_close_unref", offsetof(struct library, close) },
	{ "sd_bus_match_signal", offsetof(struct library, match_signal) },
	{ "sd_bus_message_new_method_call", offsetof(struct library, new_call) },
	{ "sd_bus_message_append", offsetof(struct library, append) },
	{ "sd_bus_message_open_container", offsetof(struct library, open) },
	{ "sd_bus_message_close_container", offsetof(struct library, shut) },
	{ "sd_bus_call", offsetof(struct library, call) },
	{ "sd_bus_message_read", offsetof(struct library, read) },
	{ "sd_bus_message_unref", offsetof(struct library, unref) },
	{ "sd_bus_process", offsetof(struct library, process) },
	{ "sd_bus_wait", offsetof(struct library, wait) },
};

static struct library sd;

static int library_load(struct error *e)
{
	void *lib = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		void *symbol = lib ? dlsym(lib, symbols[i].name) : NULL;

		if (!symbol) {
			(void)error_set(e, ERRC_UNSUPPORTED, "libsystemd.so.0 cannot be loaded");
			return error_hint(e, "install libsystemd0");
		}
		memcpy((char *)&sd + symbols[i].offset, &symbol, sizeof(symbol));
	}
	return 0;
}

struct job {
	const char *path; /* of the one that is waited for */
	char result[32];  /* "" until it is over */
};

static int job_on_removed(void *m, void *userdata, struct bus_error *error)
{
	struct job *job = userdata;
	uint32_t number = 0;
	const char *path = NULL;
	const char *unit = NULL;
	const char *result = NULL;

	(void)error;
	if (sd.read(m, "uoss", &number, &path, &unit, &result) >= 0 && job->path &&
			str_eq(path, job->path)) {
		str_printable(result, job->result, sizeof(job->result));
	}
	return 0;
}

/* The manager's own socket, where there is no bus. */
static int private_open(const char *path, void **out_bus)
{
	autofree char *address = mem_printf("unix:path=%s", path);
	void *bus = NULL;
	int r = sd.create(&bus);

	r = r < 0 ? r : sd.set_address(bus, address);
	r = r < 0 ? r : sd.start(bus);
	if (r < 0) {
		(void)sd.close(bus);
		return r;
	}
	*out_bus = bus;
	return 0;
}

static int bus_open(void **out_bus, struct error *e)
{
	bool is_root = geteuid() == 0;
	const char *variable = getenv("XDG_RUNTIME_DIR");
	/* Not set by su, nor by cron; the manager runs all the same if the user lingers. */
	autofree char *runtime = variable && variable[0] == '/'
						 ? mem_strdup(variable)
						 : mem_printf("/run/user/%u", geteuid());
	int r = is_root ? sd.open_system(out_bus) : sd.open_user(out_bus);

	if (r < 0 && is_root) {
		r = private_open("/run/systemd/private", out_bus);
	} else if (r < 0) {
		autofree char *path = mem_printf("%s/systemd/private", runtime);

		r = private_open(path, out_bus);
	}
	if (r >= 0) {
		return 0;
	}
	(void)error_set(e, ERRC_UNAVAILABLE, "the %s manager cannot be reached",
			is_root ? "system" : "user's");
	e->sysno = -r;
	return is_root ? -1 : error_hint(e, "without a login session: loginctl enable-linger");
}

static int call_failed(const struct bus_error *failure, int r, const char *what, struct error *e)
{
	char text[200];

	str_printable(failure->message ? failure->message : strerror(-r), text, sizeof(text));
	return error_set(e, ERRC_DENIED, "%s: %s", what, text);
}

/* Job signals come to those who have subscribed. */
static int subscribe(void *bus, struct error *e)
{
	struct bus_error failure = { .name = NULL };
	void *m = NULL;
	int r = sd.new_call(bus, &m, MANAGER_NAME, MANAGER_PATH, MANAGER_INTERFACE, "Subscribe");

	r = r < 0 ? r : sd.call(bus, m, 0, &failure, NULL);
	(void)sd.unref(m);
	return r < 0 ? call_failed(&failure, r, "subscribe", e) : 0;
}

/* (name, mode, properties, auxiliary units) */
static int unit_append(void *m, const char *name, uint32_t pid)
{
	int r = sd.append(m, "ss", name, "fail");

	r = r < 0 ? r : sd.open(m, 'a', "(sv)");
	r = r < 0 ? r : sd.append(m, "(sv)", "Description", "s", "osbx sandbox");
	r = r < 0 ? r : sd.append(m, "(sv)", "Delegate", "b", 1);
	/* A scope that has failed would keep its name. */
	r = r < 0 ? r : sd.append(m, "(sv)", "CollectMode", "s", "inactive-or-failed");
	r = r < 0 ? r : sd.append(m, "(sv)", "PIDs", "au", 1, pid);
	r = r < 0 ? r : sd.shut(m);
	return r < 0 ? r : sd.append(m, "a(sa(sv))", 0);
}

static int job_wait(void *bus, struct job *job, struct error *e)
{
	int64_t deadline_ms = clock_boot_ms() + JOB_MS;

	while (job->result[0] == '\0') {
		int64_t left = deadline_ms - clock_boot_ms();
		int r = sd.process(bus, NULL);

		if (r == 0 && left > 0) {
			r = sd.wait(bus, (uint64_t)left * 1000);
		}
		if (r < 0 && r != -EINTR) {
			return error_sys(e, -r, "wait for the job");
		}
		if (left <= 0) {
			return error_set(e, ERRC_TIMEOUT, "the job is not over");
		}
	}
	return str_eq(job->result, "done")
			       ? 0
			       : error_set(e, ERRC_UNAVAILABLE, "the job ended as %s", job->result);
}

static int unit_start(void *bus, const char *name, uint32_t pid, struct error *e)
{
	struct bus_error failure = { .name = NULL };
	struct job job = { .path = NULL };
	void *m = NULL;
	void *reply = NULL;
	int r = sd.match_signal(bus, NULL, NULL, MANAGER_PATH, MANAGER_INTERFACE, "JobRemoved",
			job_on_removed, &job);

	if (r < 0) {
		return error_sys(e, -r, "watch jobs");
	}
	if (subscribe(bus, e) < 0) {
		return -1;
	}
	r = sd.new_call(bus, &m, MANAGER_NAME, MANAGER_PATH, MANAGER_INTERFACE,
			"StartTransientUnit");
	r = r < 0 ? r : unit_append(m, name, pid);
	r = r < 0 ? r : sd.call(bus, m, (uint64_t)JOB_MS * 1000, &failure, &reply);
	r = r < 0 ? r : sd.read(reply, "o", &job.path);
	(void)sd.unref(m);
	/* The reply holds the path of the job. */
	r = r < 0 ? call_failed(&failure, r, name, e) : job_wait(bus, &job, e);
	(void)sd.unref(reply);
	return r;
}

static int run(int argc, char **argv, struct error *e)
{
	struct id id;
	uint64_t pid = 0;
	void *bus = NULL;

	if (argc != 3 || !id_is_valid(argv[1]) || str_to_u64(argv[2], INT32_MAX, &pid) < 0) {
		return error_set(e, ERRC_INVALID, "scope: not for people");
	}
	memcpy(id.text, argv[1], sizeof(id.text));
	autofree char *name = mem_printf("osbx-%s.scope", id.text);

	if (library_load(e) < 0 || bus_open(&bus, e) < 0) {
		return -1;
	}
	int r = unit_start(bus, name, (uint32_t)pid, e);

	(void)sd.close(bus);
	return r;
}

int scope_main(int argc, char **argv)
{
	struct error e = ERROR_INIT;

	if (run(argc, argv, &e) == 0) {
		return 0;
	}
	return fd_write_all(STDOUT_FILENO, &e, sizeof(e)) < 0 ? 1 : error_exit_status(e.code);
}
