/* What the parts of the harness share. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_SUPPORT_RUN_H
#define RDL_SUPPORT_RUN_H

#define RDL_TEST_FAILED 1
#define RDL_TEST_SKIPPED 77

/* The rank that the messages of the calling thread name; -1: none. */
void rdl_test_set_rank(int rank);

#endif
