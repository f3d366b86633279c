/* SPDX-License-Identifier: Apache-2.0 */
/* Replays a corpus through a fuzz target when libFuzzer is not linked. usage: fuzz_NAME DIR */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *dir, const char *name)
{
	static uint8_t bytes[1 << 22];
	char path[4096];
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path)) {
		return -1;
	}
	f = fopen(path, "rbe");
	if (!f) {
		return -1;
	}
	size_t n = fread(bytes, 1, sizeof(bytes), f);

	(void)fclose(f);
	(void)LLVMFuzzerTestOneInput(bytes, n);
	return 0;
}

int main(int argc, char **argv)
{
	int replayed = 0;
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;

	if (!dir) {
		(void)fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return EXIT_FAILURE;
	}
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		if (d->d_name[0] != '.') {
			if (replay(argv[1], d->d_name) < 0) {
				(void)fprintf(stderr, "%s: cannot be read\n", d->d_name);
				return EXIT_FAILURE;
			}
			replayed++;
		}
	}
	(void)closedir(dir);
	(void)printf("%d inputs replayed\n", replayed);
	return replayed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
