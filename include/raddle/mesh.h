/* Meshes: the ranks of a world in n named axes, and the groups along them.
 *
 * Order: row-major, as in DeviceMesh: the last axis varies fastest. On sizes
 * (2, 4) rank 5 stands at (1, 1).
 * Groups: along axis a, the ranks that differ from this one in a alone, in the
 * order of their coordinates; opened in the registry under no name, so no message
 * and no other rank is needed. An axis that covers the world *is* the world's
 * group; an axis of size 1 is a group of one, which costs a handle.
 * Threads: a mesh does not change; any thread may ask. Ownership: the caller of
 * create owns it and destroys it before the world is closed; handles that came from
 * it are stale after. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_MESH_H
#define RADDLE_MESH_H

#include <raddle/group.h>
#include <raddle/status.h>
#include <raddle/world.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RDL_AXES_MOST 8

typedef struct rdl_mesh rdl_mesh;

/* sizes[i] ranks along the axis names[i], slowest first; their product is the
 * size of the world. 1..RDL_AXES_MOST axes; names are unique, 1..RDL_NAME_MOST
 * bytes without a comma, copied. Local.
 * RDL_INVALID, with the numbers: "2 x 3 = 6 ranks, and the world has 8".
 * RDL_NO_MEMORY. */
RDL_CALL rdl_status rdl_mesh_create(rdl_world *world, const char *const *names,
                                    const int *sizes, int axes, rdl_mesh **out);

/* Closes the groups it opened. NULL is allowed. */
RDL_API void rdl_mesh_destroy(rdl_mesh *mesh);

/* The group along axis through this rank. "a,b" is the flattened axis of a and b
 * (in the mesh's order, not needing to be neighbours): the ranks that differ in
 * these alone, the last named fastest. Opened when first asked for; closed with the
 * mesh, so do not close it. RDL_INVALID: no such axis (with those there are), or
 * out of order. RDL_NO_MEMORY. */
RDL_CALL rdl_status rdl_mesh_group(rdl_mesh *mesh, const char *axis,
                                   rdl_group *out);

/* Ranks along axis, and this rank's place among them. "a,b" as above. */
RDL_CALL rdl_status rdl_mesh_size(const rdl_mesh *mesh, const char *axis,
                                  int *size);
RDL_CALL rdl_status rdl_mesh_coordinate(const rdl_mesh *mesh, const char *axis,
                                        int *coordinate);

/* Whether a and b arrange the same world, by the same names and sizes, and their
 * groups are the same. Meshes of different lives of a job never are equal; a world
 * that was closed is not asked. NULL equals nothing. */
RDL_API bool rdl_mesh_equal(const rdl_mesh *a, const rdl_mesh *b);

#ifdef __cplusplus
}
#endif
#endif
