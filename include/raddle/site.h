/* Call sites: where in a program a call was made. Sentences of failures, records
 * and dumps name it, of this rank and of its peers: "all_reduce(8 float32, sum) at
 * train.c:120".
 *
 * A call that has a site comes in two forms: rdl_NAME_at takes it as a last
 * argument, and a macro of the name rdl_NAME passes the file and line where it
 * stands. The function rdl_NAME is there too, for pointers to functions, bindings,
 * and programs that define RDL_NO_SITES before the first header: its site is the
 * code that it returns to, as module and offset, "train.so+0x1a2b [build 0a1b2c3d]".
 * -fmacro-prefix-map shortens __FILE__.
 *
 * A site is a text that stays as it is as long as the world lives: a string literal,
 * or in a binding one kept for each place. NULL: where the call returns to. Where
 * rdl_call names a caller, it follows in parentheses. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_SITE_H
#define RADDLE_SITE_H

#include <raddle/status.h>

#define RDL_SITE_TEXT(line) RDL_SITE_TEXT_OF(line)
#define RDL_SITE_TEXT_OF(line) #line

/* This place: "train.c:120". */
#define RDL_HERE __FILE__ ":" RDL_SITE_TEXT(__LINE__)

#endif
