/* Meshes: coordinates are arithmetic on the rank, groups come from the registry. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/mesh.h>

#include "base/memory.h"
#include "base/ranks.h"
#include "base/status.h"
#include "comm/world.h"

#include <pthread.h>
#include <string.h>

typedef struct axis_info {
    char name[RDL_NAME_MOST + 1];
    int size;
    int stride; /* how far apart in rank its neighbours are */
    int coordinate;
} axis_info;

/* Axes as a set: bit i is axis i. */
typedef unsigned axis_set;

struct rdl_mesh {
    rdl_world *world;
    int rank;
    int n;
    axis_info axis[RDL_AXES_MOST];

    pthread_mutex_t lock; /* protects what follows; the registry's own lock is
                             taken under it, and never the other way round */
    bool opened[1 << RDL_AXES_MOST];
    rdl_group groups[1 << RDL_AXES_MOST];
};

/* --- sizes and names ------------------------------------------------------- */

static bool is_taken(const char *const *names, int i)
{
    for (int k = 0; k < i; k++)
        if (strcmp(names[k], names[i]) == 0)
            return true;
    return false;
}

static rdl_status check_axis(const char *const *names, const int *sizes, int i)
{
    const char *name = names[i];

    if (name == NULL || name[0] == 0)
        return rdl_fail(RDL_INVALID, "mesh: axis %d has no name", i);
    if (strlen(name) > RDL_NAME_MOST)
        return rdl_fail(
            RDL_INVALID,
            "mesh: the name '%.20s...' has %zu bytes; %d is the most", name,
            strlen(name), RDL_NAME_MOST);
    if (strchr(name, ',') != NULL)
        return rdl_fail(RDL_INVALID,
                        "mesh: the name '%s' holds a comma, which joins axes",
                        name);
    if (is_taken(names, i))
        return rdl_fail(RDL_INVALID, "mesh: two axes are named '%s'", name);
    if (sizes[i] < 1)
        return rdl_fail(RDL_INVALID,
                        "mesh: axis '%s' has %d ranks; 1 is the least", name,
                        sizes[i]);
    return RDL_OK;
}

/* "dp x tp: 2 x 3" */
static void write_shape(rdl_text *text, const char *const *names,
                        const int *sizes, int n)
{
    for (int i = 0; i < n; i++)
        rdl_text_add(text, "%s%s", i > 0 ? " x " : "", names[i]);
    for (int i = 0; i < n; i++)
        rdl_text_add(text, "%s%d", i > 0 ? " x " : ": ", sizes[i]);
}

static rdl_status check_product(const char *const *names, const int *sizes,
                                int n, int world_size)
{
    char words[RDL_SENTENCE];
    rdl_text text = { words, sizeof words };
    long long product = 1;
    bool too_many = false;

    for (int i = 0; i < n; i++)
        too_many |= __builtin_mul_overflow(product, sizes[i], &product);
    if (!too_many && product == world_size)
        return RDL_OK;
    write_shape(&text, names, sizes, n);
    if (too_many)
        return rdl_fail(RDL_INVALID,
                        "mesh %s ranks are too many to count, and the world "
                        "has %d",
                        words, world_size);
    return rdl_fail(RDL_INVALID, "mesh %s = %lld ranks, and the world has %d",
                    words, product, world_size);
}

static rdl_status check(const char *const *names, const int *sizes, int n,
                        int world_size)
{
    if (names == NULL || sizes == NULL)
        return rdl_fail(RDL_INVALID, "mesh: %s is NULL",
                        names ? "sizes" : "names");
    if (n < 1 || n > RDL_AXES_MOST)
        return rdl_fail(RDL_INVALID, "mesh: %d axes are outside 1..%d", n,
                        RDL_AXES_MOST);
    for (int i = 0; i < n; i++)
        RDL_TRY(check_axis(names, sizes, i));
    return check_product(names, sizes, n, world_size);
}

static void place_axes(rdl_mesh *mesh, const char *const *names,
                       const int *sizes)
{
    int stride = 1;

    for (int i = mesh->n; i-- > 0; stride *= sizes[i]) {
        axis_info *a = &mesh->axis[i];

        memcpy(a->name, names[i], strlen(names[i]) + 1);
        a->size = sizes[i];
        a->stride = stride;
        a->coordinate = mesh->rank / stride % sizes[i];
    }
}

/* --- which axes are meant -------------------------------------------------- */

/* The axis named text[0..length), or -1. */
static int find_axis(const rdl_mesh *mesh, const char *text, size_t length)
{
    for (int i = 0; i < mesh->n; i++)
        if (strlen(mesh->axis[i].name) == length &&
            memcmp(mesh->axis[i].name, text, length) == 0)
            return i;
    return -1;
}

static rdl_status no_axis(const rdl_mesh *mesh, const char *name, size_t length)
{
    char words[RDL_SENTENCE];
    rdl_text text = { words, sizeof words };

    for (int i = 0; i < mesh->n; i++)
        rdl_text_add(&text, "%s%s", i > 0 ? "," : "", mesh->axis[i].name);
    return rdl_fail(RDL_INVALID, "the mesh has no axis '%.*s': it has %s",
                    (int)(length < 100 ? length : 100), name, words);
}

/* "a" or "a,b": those axes. */
static rdl_status find_axes(const rdl_mesh *mesh, const char *text,
                            axis_set *out)
{
    const char *at = text;
    axis_set found = 0;

    if (mesh == NULL || text == NULL)
        return rdl_fail(RDL_INVALID, "mesh: %s is NULL", mesh ? "axis" : "mesh");
    for (;; at++) {
        size_t length = strcspn(at, ",");
        int i = find_axis(mesh, at, length);

        if (i < 0)
            return no_axis(mesh, at, length);
        if (found >> i != 0)
            return rdl_fail(RDL_INVALID,
                            "'%.200s' is out of order: in the mesh '%s' stands "
                            "before, and each may be named once",
                            text, mesh->axis[i].name);
        found |= 1u << i;
        at += length;
        if (*at == 0)
            break;
    }
    *out = found;
    return RDL_OK;
}

static int size_of(const rdl_mesh *mesh, axis_set set)
{
    int size = 1;

    for (int i = 0; i < mesh->n; i++)
        if (set >> i & 1)
            size *= mesh->axis[i].size;
    return size;
}

/* --- groups ---------------------------------------------------------------- */

/* The rank at place k along the flattened axis, all other coordinates ours. */
static int rank_at(const rdl_mesh *mesh, axis_set set, int k)
{
    int rank = mesh->rank;

    for (int i = mesh->n; i-- > 0;) {
        const axis_info *a = &mesh->axis[i];

        if (set >> i & 1) {
            rank += (k % a->size - a->coordinate) * a->stride;
            k /= a->size;
        }
    }
    return rank;
}

static rdl_status open_along(rdl_mesh *mesh, axis_set set)
{
    int ranks[RDL_MAX_RANKS];
    int size = size_of(mesh, set);

    if (mesh->opened[set])
        return RDL_OK;
    for (int k = 0; k < size; k++)
        ranks[k] = rank_at(mesh, set, k);
    RDL_TRY(rdl_group_open(mesh->world, ranks, size, NULL, &mesh->groups[set]));
    mesh->opened[set] = true;
    return RDL_OK;
}

/* --- the calls ------------------------------------------------------------- */

rdl_status rdl_mesh_create(rdl_world *world, const char *const *names,
                           const int *sizes, int axes, rdl_mesh **out)
{
    rdl_mesh *mesh;
    rdl_status st;
    int size;

    RDL_TRY(rdl_group_size(world, RDL_WORLD, &size));
    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_mesh_create: out is NULL");
    RDL_TRY(check(names, sizes, axes, size));
    mesh = rdl_calloc_for(&world->purse, 1, sizeof *mesh);
    if (mesh == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a mesh");
    mesh->world = world;
    mesh->rank = rdl_world_rank(world);
    mesh->n = axes;
    pthread_mutex_init(&mesh->lock, NULL);
    place_axes(mesh, names, sizes);
    for (int i = 0; i < axes; i++) {
        st = open_along(mesh, 1u << i);
        if (st != RDL_OK)
            goto fail;
    }
    *out = mesh;
    return RDL_OK;

fail:
    rdl_mesh_destroy(mesh);
    return st;
}

void rdl_mesh_destroy(rdl_mesh *mesh)
{
    if (mesh == NULL)
        return;
    for (axis_set set = 0; set < 1u << mesh->n; set++)
        if (mesh->opened[set])
            (void)rdl_group_close(mesh->world, mesh->groups[set]);
    pthread_mutex_destroy(&mesh->lock);
    rdl_free(mesh);
}

rdl_status rdl_mesh_group(rdl_mesh *mesh, const char *axis, rdl_group *out)
{
    axis_set set;
    rdl_status st;

    RDL_TRY(find_axes(mesh, axis, &set));
    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_mesh_group: out is NULL");
    pthread_mutex_lock(&mesh->lock);
    st = open_along(mesh, set);
    if (st == RDL_OK)
        *out = mesh->groups[set];
    pthread_mutex_unlock(&mesh->lock);
    return st;
}

rdl_status rdl_mesh_size(const rdl_mesh *mesh, const char *axis, int *size)
{
    axis_set set;

    RDL_TRY(find_axes(mesh, axis, &set));
    if (size == NULL)
        return rdl_fail(RDL_INVALID, "rdl_mesh_size: size is NULL");
    *size = size_of(mesh, set);
    return RDL_OK;
}

rdl_status rdl_mesh_coordinate(const rdl_mesh *mesh, const char *axis,
                               int *coordinate)
{
    axis_set set = 0; /* for the analyser's sake */
    int place = 0;

    RDL_TRY(find_axes(mesh, axis, &set));
    if (coordinate == NULL)
        return rdl_fail(RDL_INVALID, "rdl_mesh_coordinate: coordinate is NULL");
    for (int i = 0; i < mesh->n; i++)
        if (set >> i & 1)
            place = place * mesh->axis[i].size + mesh->axis[i].coordinate;
    *coordinate = place;
    return RDL_OK;
}

static bool same_group(rdl_group a, rdl_group b)
{
    return a.index == b.index && a.generation == b.generation &&
           a.world == b.world;
}

/* A handle names its world's life, so this also tells lives apart, and asks no
 * world that may be closed by now. */
bool rdl_mesh_equal(const rdl_mesh *a, const rdl_mesh *b)
{
    if (a == NULL || b == NULL || a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->axis[i].size != b->axis[i].size ||
            strcmp(a->axis[i].name, b->axis[i].name) != 0 ||
            !same_group(a->groups[1u << i], b->groups[1u << i]))
            return false;
    return true;
}
