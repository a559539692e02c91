/* Files of tensors in the safetensors format: a header in JSON, then the data of
 * each tensor, in order, little-endian.
 *
 * A file gets its name when it is whole: until then it has none, or, where the
 * file system wants one, ".NAME.partial". */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_TENSORS_H
#define RDL_CLI_TRAIN_TENSORS_H

#include "train/trouble.h"

#include <stddef.h>
#include <stdint.h>

#define TENSOR_DIMS_MOST 3

typedef enum tensor_type { TENSOR_F32, TENSOR_I32 } tensor_type;

typedef struct tensor {
    const char *name;
    tensor_type type;
    int dims;
    int64_t shape[TENSOR_DIMS_MOST];
} tensor;

typedef struct tensor_file tensor_file;

/* folder exists. names and shapes are copied. */
bool tensor_file_create(const char *folder, const char *name,
                        const tensor *tensors, size_t count, tensor_file **out,
                        trouble *t);

/* Adds bytes behind what was written before. */
bool tensor_file_write(tensor_file *f, const void *data, size_t bytes,
                       trouble *t);

/* Gives the file its name, replacing one that has it, and frees f. All tensors
 * have been written. */
bool tensor_file_finish(tensor_file *f, trouble *t);

/* Frees f and leaves nothing. NULL is allowed. */
void tensor_file_drop(tensor_file *f);

/* Makes the folder if it is not there, and sees whether files can be made in it. */
bool tensor_folder_check(const char *folder, trouble *t);

#endif
