/* A program outside the tree, against the installed library. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/status.h>
#include <raddle/version.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    printf("%s\n", rdl_status_name(RDL_TIMEOUT));
    return strcmp(rdl_status_text(RDL_OK), "success") != 0;
}
