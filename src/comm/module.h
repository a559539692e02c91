/* Where an address of code lies, in words that can be read when the process is
 * gone: the file, the offset in it, and its build id. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_MODULE_H
#define RDL_COMM_MODULE_H

#include <stddef.h>

/* "train+0x1a2f [build 3fa9c1d2]", as `addr2line -e train 0x1a2f` wants it;
 * "address 0x7f..." if it is in no file. The address is one to which a call returns:
 * the text is of the byte before it, which is the call's own. */
void rdl_module_place(const void *address, char *text, size_t bytes);

#endif
