/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * limits - every maximum of a byte or item count that comes from outside, in one place.
 */
#ifndef OSBX_LIMITS_H
#define OSBX_LIMITS_H

#define LIMIT_PATH_BYTES      4096
#define LIMIT_REF_BYTES       512
#define LIMIT_MANIFEST_BYTES  (4U << 20)
#define LIMIT_CONFIG_BYTES    (1U << 20)
#define LIMIT_INDEX_BYTES     (4U << 20)
#define LIMIT_LAYERS          128
#define LIMIT_INDEX_DEPTH     4 /* index inside index */
#define LIMIT_JSON_DEPTH      32
#define LIMIT_JSON_NODES      200000
#define LIMIT_ARGS            131072 /* strings of a list: argv of a workload */
#define LIMIT_ENV             4096   /* variables of a workload */
#define LIMIT_ARGS_BYTES      (1U << 20)
#define LIMIT_PASSWD_BYTES    (1U << 20)
#define LIMIT_PASSWD_LINE     4096
#define LIMIT_GROUPS          64
#define LIMIT_VOLUMES         256
#define LIMIT_LABELS          256
#define LIMIT_PORTS           64 /* that one sandbox publishes */
#define LIMIT_CONF_BYTES      (256U << 10)
#define LIMIT_SECCOMP_JSON    (1U << 20)
#define LIMIT_BPF_INSNS       4096 /* BPF_MAXINSNS */
#define LIMIT_STATE_BYTES     (1U << 20)
#define LIMIT_AUTH_FILE_BYTES (1U << 20)
#define LIMIT_SECRET_BYTES    (64U << 10)   /* a user name and secret */
#define LIMIT_ARCHIVE_MEMBERS 8192          /* of an oci-archive or docker-archive */
#define LIMIT_UNPACK_BYTES    (64ULL << 30) /* default budget of one image, --unpack-max */
#define LIMIT_UNPACK_ENTRIES  4000000ULL
#define LIMIT_XATTR_BYTES     65536
#define LIMIT_NAME_BYTES      64  /* --name, --hostname: HOST_NAME_MAX of Linux */
#define LIMIT_CPU_MILLI_MIN   10U /* 1 ms of each 100: the kernel's smallest quota */
#define LIMIT_CPU_MILLI_MAX   8192000U
#define LIMIT_MEMORY_MIN      (6ULL << 20) /* PID 1, a shell, and what the kernel has for them */
#define LIMIT_MEMORY_MAX      (1ULL << 60)
#define LIMIT_PIDS_MAX        4194304U /* PID_MAX_LIMIT of the kernel */

#endif
