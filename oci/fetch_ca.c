/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "fetch_setup.h"

#define CA_FILES_MAX 64 /* in one directory */

static const char ca_begin[] = "-----BEGIN CERTIFICATE-----";

/* Where Docker and podman look for the issuers of one registry. */
static const char *const ca_dirs[] = { "/etc/docker/certs.d", "/etc/containers/certs.d" };

/* Debian, Fedora, openSUSE, Alpine. */
static const char *const ca_system[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
};

/* Append a file of certificates. 0 or -errno; -EMSGSIZE, -EBADMSG (not one certificate). */
static int file_add(const char *path, struct buf *out)
{
	autoclose int fd = fd_open(path, O_RDONLY | O_NONBLOCK, 0);
	size_t before = out->n;
	struct stat st;
	int rc = fd < 0 ? fd : 0;

	if (rc == 0) {
		rc = fstat(fd, &st) < 0 ? -errno : !S_ISREG(st.st_mode) ? -EBADMSG : 0;
	}
	rc = rc < 0 ? rc : fd_read_all(fd, out);
	if (rc < 0) {
		return rc;
	}
	rc = buf_append(out, "\n", 2);
	out->n -= rc == 0 ? 1 : 0;
	return rc < 0 ? rc : strstr(out->p + before, ca_begin) ? 0 : -EBADMSG;
}

static int file_take(const char *path, struct buf *out, struct error *e)
{
	int rc = file_add(path, out);

	if (rc == -EMSGSIZE) {
		return error_set(e, ERRC_LIMIT, "certificates %s: more than %u bytes in all", path,
				FETCH_CA_BYTES_MAX);
	}
	if (rc == -EBADMSG) {
		return error_set(e, ERRC_INVALID, "certificates %s: not a PEM certificate", path);
	}
	return rc < 0 ? error_sys(e, -rc, "read certificates %s", path) : 0;
}

/* All HOST's "*.crt"; a directory that is not there or not ours to read has none. */
static int dir_take(const char *dir, const char *host, struct buf *out, struct error *e)
{
	autofree char *path = mem_printf("%s/%s", dir, host);
	DIR *d = opendir(path);
	int n = 0;
	int rc = 0;

	if (!d) {
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES
				       ? 0
				       : error_sys(e, errno, "read certificates %s", path);
	}
	for (struct dirent *entry = readdir(d); rc == 0 && entry; entry = readdir(d)) {
		autofree char *file = mem_printf("%s/%s", path, entry->d_name);

		if (!str_has_suffix(entry->d_name, ".crt")) {
			continue;
		}
		rc = ++n > CA_FILES_MAX ? error_set(e, ERRC_LIMIT,
							  "certificates %s: more than %d files",
							  path, CA_FILES_MAX)
					: file_take(file, out, e);
	}
	(void)closedir(d);
	return rc;
}

/* The machine's own, which the given ones are added to. */
static int system_take(struct buf *out, struct error *e)
{
	const char *chosen = getenv("SSL_CERT_FILE");

	if (chosen && chosen[0] != '\0') {
		return file_take(chosen, out, e);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ca_system); i++) {
		if (access(ca_system[i], R_OK) == 0) {
			return file_take(ca_system[i], out, e);
		}
	}
	return 0;
}

int fetch_ca_read(const char *host, const char *ca_file, char **out_ca, struct error *e)
{
	AUTO(buf) struct buf all = BUF_INIT(FETCH_CA_BYTES_MAX);
	const char *chosen = getenv("SSL_CERT_FILE");

	if (ca_file && file_take(ca_file, &all, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(ca_dirs); i++) {
		if (dir_take(ca_dirs[i], host, &all, e) < 0) {
			return -1;
		}
	}
	if (all.n == 0 && (!chosen || chosen[0] == '\0')) {
		*out_ca = NULL;
		return 0;
	}
	if (system_take(&all, e) < 0) {
		return -1;
	}
	*out_ca = buf_take(&all);
	return 0;
}
