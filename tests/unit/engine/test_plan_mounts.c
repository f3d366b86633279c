/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include <osbx/mem.h>
#include <osbx/plan.h>

#include "../unit.h"

struct fixture {
	struct sandbox_request req;
	struct image img;
	struct image_layer layers[2];
	struct id id;
	struct idmap map;
	int volume_fds[4];
	struct plan_input in;
	struct spec spec;
};

static void fixture_done(struct fixture *f)
{
	request_done(&f->req);
	spec_done(&f->spec);
	free(f->img.rootfs);
}
AUTO_DEFINE(fixture, struct fixture, fixture_done);

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){
		.map = { .mode = IDMAP_SINGLE },
		.layers = { { .chain = { "sha256:"
					 "1111111111111111111111111111111111111111111111111111111111"
					 "111111" } },
				{ .chain = { "sha256:"
					     "22222222222222222222222222222222222222222222222222222"
					     "22222222222" } } },
		.volume_fds = { 70, 71, 72, 73 },
	};
	request_init(&f->req);
	spec_init(&f->spec);
	f->req.image = mem_strdup("busybox");
	f->img.layers = f->layers;
	f->img.layers_n = 2;
	id_new(&f->id);
	f->in = (struct plan_input){
		.req = &f->req,
		.img = &f->img,
		.id = &f->id,
		.map = &f->map,
		.layers = "/root/layers/single",
		.record = "/root/sandboxes/id",
		.volume_fds = f->volume_fds,
	};
}

static void plan(struct fixture *f)
{
	struct error e = ERROR_INIT;

	ck_assert_int_eq(plan_spec(&f->in, &f->spec, &e), 0);
	ck_assert_int_eq(plan_mounts(&f->in, &f->spec, &e), 0);
}

/* All destinations, in order, each with a blank behind it. */
static const char *order(const struct fixture *f)
{
	static char text[1024];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < f->spec.mounts_n; i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s ", f->spec.mounts[i].dst);
	}
	return text;
}

static const struct spec_mount *find(const struct fixture *f, const char *dst)
{
	for (size_t i = 0; i < f->spec.mounts_n; i++) {
		if (strcmp(f->spec.mounts[i].dst, dst) == 0) {
			return &f->spec.mounts[i];
		}
	}
	ck_abort_msg("no mount at %s", dst);
	return NULL;
}

START_TEST(names_the_layers_lowest_first)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };

	fixture_init(&f);
	plan(&f);
	ck_assert_uint_eq(f.spec.trees_n, 2);
	ck_assert_str_eq(f.spec.trees[0].path, "/root/layers/single");
	ck_assert_int_eq(f.spec.trees[0].ids, SPEC_TREE_CONTAINER);
	ck_assert_str_eq(f.spec.trees[1].path, "/root/sandboxes/id");
	ck_assert_uint_eq(f.spec.lowers_n, 3);
	ck_assert_str_eq(f.spec.lowers[0].path, PLAN_POINTS_LOWER);
	ck_assert_str_eq(f.spec.lowers[1].path, digest_hex(&f.layers[0].chain));
	ck_assert_str_eq(f.spec.lowers[2].path, digest_hex(&f.layers[1].chain));
	ck_assert(f.spec.is_ephemeral);
}
END_TEST

START_TEST(a_directory_is_the_only_layer)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };

	fixture_init(&f);
	f.img.layers_n = 0;
	f.img.rootfs = mem_strdup("/srv/rootfs");
	f.req.keep = true;
	plan(&f);
	ck_assert_str_eq(f.spec.trees[0].path, "/srv/rootfs");
	ck_assert_uint_eq(f.spec.lowers_n, 1);
	ck_assert_str_eq(f.spec.lowers[0].path, "");
	ck_assert(!f.spec.is_ephemeral);
}
END_TEST

START_TEST(the_host_has_its_skeleton)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };

	fixture_init(&f);
	f.img.layers_n = 0;
	f.img.is_host = true;
	plan(&f);
	ck_assert_str_eq(f.spec.trees[0].path, "/root/layers/single");
	ck_assert_uint_eq(f.spec.lowers_n, 1);
	ck_assert_str_eq(f.spec.lowers[0].path, PLAN_HOST_LOWER);
}
END_TEST

START_TEST(an_image_without_layers_is_none)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	f.img.layers_n = 0;
	ck_assert_int_eq(plan_spec(&f.in, &f.spec, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

START_TEST(writes_the_names)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };

	fixture_init(&f);
	f.req.hostname = mem_strdup("web");
	plan(&f);
	ck_assert_str_eq(order(&f), "/etc/hostname /etc/hosts /etc/resolv.conf ");
	ck_assert_str_eq(f.spec.hostname, "web");
	ck_assert_str_eq(find(&f, "/etc/hostname")->content, "web\n");
	ck_assert_str_eq(find(&f, "/etc/resolv.conf")->content, "");
	ck_assert_str_eq(find(&f, "/etc/hosts")->content,
			"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
			"127.0.0.1\tweb\n");
	ck_assert_uint_eq(find(&f, "/etc/hosts")->mode, 0644);
}
END_TEST

START_TEST(takes_the_hosts_names_with_its_network)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };

	fixture_init(&f);
	f.req.hostname = mem_strdup("web");
	f.req.network = SPEC_NETWORK_HOST;
	f.in.hosts = "10.0.0.1 db";
	f.in.resolv_conf = "nameserver 10.0.0.2\n";
	plan(&f);
	ck_assert_str_eq(find(&f, "/etc/hosts")->content, "10.0.0.1 db\n127.0.0.1\tweb\n");
	ck_assert_str_eq(find(&f, "/etc/resolv.conf")->content, "nameserver 10.0.0.2\n");
	ck_assert_int_eq(f.spec.network, SPEC_NETWORK_HOST);
}
END_TEST

START_TEST(binds_volumes_by_descriptor)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	ck_assert_int_eq(request_add_volume(&f.req, "/srv/a:/a:ro", &e), 0);
	ck_assert_int_eq(request_add_volume(&f.req, "/srv/b:/b", &e), 0);
	plan(&f);
	const struct spec_mount *a = find(&f, "/a");
	const struct spec_mount *b = find(&f, "/b");

	ck_assert_int_eq(a->kind, SPEC_MOUNT_BIND);
	ck_assert(a->read_only && !b->read_only);
	ck_assert_int_eq(f.spec.trees[a->tree].fd, 70);
	ck_assert_int_eq(f.spec.trees[b->tree].fd, 71);
	ck_assert_int_eq(f.spec.trees[b->tree].ids, SPEC_TREE_OWNER);
	ck_assert(f.spec.trees[b->tree].recursive);
	ck_assert_str_eq(f.spec.trees[b->tree].path, "/srv/b");
}
END_TEST

/* What the image declares is made, but not in a volume, and not in place of one. */
START_TEST(a_directory_has_no_platforms)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	f.req.platform = mem_strdup("linux/arm64");
	plan(&f);
	spec_done(&f.spec);
	spec_init(&f.spec);
	f.img.layers_n = 0;
	f.img.is_host = _i == 0;
	f.img.rootfs = _i == 1 ? mem_strdup("/rootfs") : NULL;
	ck_assert_int_eq(plan_spec(&f.in, &f.spec, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, "linux/arm64"));
}
END_TEST

START_TEST(tells_of_a_terminal)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };

	fixture_init(&f);
	f.req.tty = _i == 1;
	plan(&f);
	ck_assert_int_eq(f.spec.tty, _i);
}
END_TEST

START_TEST(makes_the_directories_of_the_image)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	ck_assert_int_eq(strv_add(&f.img.config.volumes, "/data"), 0);
	ck_assert_int_eq(strv_add(&f.img.config.volumes, "/memory/data"), 0);
	ck_assert_int_eq(strv_add(&f.img.config.volumes, "/srv"), 0);
	ck_assert_int_eq(strv_add(&f.img.config.volumes, "/srv/data"), 0);
	ck_assert_int_eq(request_add_volume(&f.req, "/s:/srv", &e), 0);
	ck_assert_int_eq(request_add_tmpfs(&f.req, "/memory", &e), 0);
	plan(&f);
	ck_assert_str_eq(order(&f), "/data /srv /memory /etc/hostname /etc/hosts /etc/resolv.conf "
				    "/memory/data ");
	ck_assert_int_eq(find(&f, "/data")->kind, SPEC_MOUNT_DIR);
	ck_assert_int_eq(find(&f, "/srv")->kind, SPEC_MOUNT_BIND);
	ck_assert_int_eq(find(&f, "/memory/data")->kind, SPEC_MOUNT_DIR);
	strv_done(&f.img.config.volumes);
}
END_TEST

START_TEST(mounts_what_is_above_first)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	ck_assert_int_eq(request_add_volume(&f.req, "/s:/data/a/b", &e), 0);
	ck_assert_int_eq(request_add_volume(&f.req, "/s:/data/a", &e), 0);
	ck_assert_int_eq(request_add_volume(&f.req, "/s:/z//", &e), 0);
	ck_assert_int_eq(request_add_tmpfs(&f.req, "/data:1m", &e), 0);
	plan(&f);
	ck_assert_str_eq(order(&f), "/z /data /etc/hostname /etc/hosts /etc/resolv.conf /data/a "
				    "/data/a/b ");
	ck_assert_int_eq(find(&f, "/data")->kind, SPEC_MOUNT_TMPFS);
	ck_assert_uint_eq(find(&f, "/data")->size, 1U << 20);
	ck_assert_uint_eq(find(&f, "/data")->mode, 01777);
}
END_TEST

START_TEST(a_wanted_file_replaces_our_own)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	ck_assert_int_eq(request_add_volume(&f.req, "/srv/hosts:/etc/../etc/hosts", &e), 0);
	plan(&f);
	ck_assert_str_eq(order(&f), "/etc/hostname /etc/resolv.conf /etc/hosts ");
	ck_assert_int_eq(find(&f, "/etc/hosts")->kind, SPEC_MOUNT_BIND);
}
END_TEST

START_TEST(nothing_of_ours_goes_into_a_volume)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	ck_assert_int_eq(request_add_volume(&f.req, "/srv/etc:/etc", &e), 0);
	plan(&f);
	ck_assert_str_eq(order(&f), "/etc ");
}
END_TEST

START_TEST(our_own_goes_into_a_tmpfs)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	ck_assert_int_eq(request_add_tmpfs(&f.req, "/etc", &e), 0);
	plan(&f);
	ck_assert_str_eq(order(&f), "/etc /etc/hostname /etc/hosts /etc/resolv.conf ");
}
END_TEST

START_TEST(a_read_only_root_has_room_to_write)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	f.req.read_only = true;
	ck_assert_int_eq(request_add_volume(&f.req, "/srv/tmp:/tmp", &e), 0);
	plan(&f);
	ck_assert(f.spec.read_only);
	ck_assert_int_eq(find(&f, "/run")->kind, SPEC_MOUNT_TMPFS);
	ck_assert_uint_eq(find(&f, "/run")->mode, 0755);
	ck_assert_uint_eq(find(&f, "/var/tmp")->mode, 01777);
	ck_assert_int_eq(find(&f, "/tmp")->kind, SPEC_MOUNT_BIND);
}
END_TEST

START_TEST(the_root_is_no_destination)
{
	AUTO(fixture) struct fixture f = { .volume_fds = { 0 } };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	ck_assert_int_eq(request_add_volume(&f.req, "/srv:/a/..", &e), 0);
	ck_assert_int_eq(plan_spec(&f.in, &f.spec, &e), 0);
	ck_assert_int_eq(plan_mounts(&f.in, &f.spec, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("plan_mounts");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, names_the_layers_lowest_first);
	tcase_add_test(tc, a_directory_is_the_only_layer);
	tcase_add_test(tc, the_host_has_its_skeleton);
	tcase_add_test(tc, an_image_without_layers_is_none);
	tcase_add_test(tc, writes_the_names);
	tcase_add_test(tc, takes_the_hosts_names_with_its_network);
	tcase_add_test(tc, binds_volumes_by_descriptor);
	tcase_add_loop_test(tc, a_directory_has_no_platforms, 0, 2);
	tcase_add_loop_test(tc, tells_of_a_terminal, 0, 2);
	tcase_add_test(tc, makes_the_directories_of_the_image);
	tcase_add_test(tc, mounts_what_is_above_first);
	tcase_add_test(tc, a_wanted_file_replaces_our_own);
	tcase_add_test(tc, nothing_of_ours_goes_into_a_volume);
	tcase_add_test(tc, our_own_goes_into_a_tmpfs);
	tcase_add_test(tc, a_read_only_root_has_room_to_write);
	tcase_add_test(tc, the_root_is_no_destination);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
