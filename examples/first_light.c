/* The demo program. The build makes one program of each examples/NAME.c; the
 * parts of this one stand in first_light/ and come together here. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "first_light/account.c"
#include "first_light/main.c"
#include "first_light/show.c"
#include "first_light/speak.c"
#include "first_light/text.c"
#include "first_light/train.c"
