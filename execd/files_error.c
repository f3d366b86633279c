/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "files.h"
#include "shown.h"

int files_sys(struct error *e, int sysno, const char *what, const char *path)
{
	(void)error_sys(e, sysno, "%s \"%s\"", what, shown(path).text);
	if (sysno == ENOENT || sysno == ENOTDIR) {
		e->code = ERRC_NOT_FOUND;
	} else if (sysno == ENAMETOOLONG || sysno == EINVAL) {
		e->code = ERRC_INVALID;
	}
	return -1;
}
