// Writes a trained network of the digits example to a file and reads it back, on any machine and backend.
//
//   "NGDIGITS"                  8 bytes
//   version, arrays             u32 each; all numbers little-endian
//   bytes, program              u64, then what ng_prog_save gave
//   for each array              the program's argument of that name:
//     name                      32 bytes, the rest of them 0
//     dtype, ndim               u32 each, as in ng_shape
//     dims                      i64 each, ndim of them
//     data                      row-major, of the dtype
#include "digits.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, NAME_BYTES = 32, PROGRAM_MAX = 1 << 24 };
static const char MAGIC[8] = { 'N', 'G', 'D', 'I', 'G', 'I', 'T', 'S' };

static uint64_t shape_bytes(const ng_shape *shape)
{
    uint64_t bytes = (shape->dtype >> 8 & 0xff) / 8;
    for (int axis = 0; axis < shape->ndim; axis++) bytes *= (uint64_t)shape->dims[axis];
    return bytes;
}

static void write_bytes(FILE *file, const void *data, size_t bytes, const char *path)
{
    if (fwrite(data, 1, bytes, file) != bytes) stop("cannot write %s: is the disk full?", path);
}

static void read_bytes(FILE *file, void *data, size_t bytes, const char *path)
{
    if (fread(data, 1, bytes, file) != bytes) stop("%s ends in the middle: it was cut, or is no file of this program", path);
}

static void write_program(FILE *file, const ng_prog *program, const char *path)
{
    size_t bytes = 0;
    TRY(ng_prog_save(program, 0, NULL, &bytes, &fault));
    void *buffer = malloc(bytes);
    if (!buffer) stop("no memory for a program of %zu bytes", bytes);
    TRY(ng_prog_save(program, 0, buffer, &bytes, &fault));
    write_bytes(file, &(uint64_t){ bytes }, sizeof(uint64_t), path);
    write_bytes(file, buffer, bytes, path);
    free(buffer);
}

static void write_array(FILE *file, const char *name, ng_tensor *tensor, const char *path)
{
    ng_shape shape = { .size = sizeof shape };
    TRY(ng_tensor_shape(tensor, &shape));
    const size_t bytes = (size_t)shape_bytes(&shape);
    char         label[NAME_BYTES] = { 0 };
    void        *data = malloc(bytes);
    if (!data) stop("no memory for %zu bytes of %s", bytes, name);
    strncpy(label, name, NAME_BYTES - 1);
    TRY(ng_tensor_get(tensor, data, bytes, &fault));
    write_bytes(file, label, sizeof label, path);
    write_bytes(file, (uint32_t[]){ shape.dtype, (uint32_t)shape.ndim }, 2 * sizeof(uint32_t), path);
    write_bytes(file, shape.dims, (size_t)shape.ndim * sizeof *shape.dims, path);
    write_bytes(file, data, bytes, path);
    free(data);
}

void model_save(const struct model *model, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file) stop("cannot write %s", path);
    write_bytes(file, MAGIC, sizeof MAGIC, path);
    write_bytes(file, (uint32_t[]){ VERSION, WEIGHTS }, 2 * sizeof(uint32_t), path);
    write_program(file, model->answer, path);
    for (uint32_t i = ARG_WEIGHT; i < ARG_WEIGHT + WEIGHTS; i++) {
        ng_shape    shape = { .size = sizeof shape };
        const char *name = NULL;
        TRY(ng_prog_port(model->answer, i, &shape, &name, &fault));
        write_array(file, name, model->args[i], path);
    }
    if (fclose(file) != 0) stop("cannot write %s: is the disk full?", path);
}

static ng_prog *read_program(FILE *file, ng_ctx *context, const char *path)
{
    uint64_t bytes = 0;
    read_bytes(file, &bytes, sizeof bytes, path);
    if (bytes > PROGRAM_MAX) stop("%s: a program of %llu bytes cannot be", path, (unsigned long long)bytes);
    void *buffer = malloc((size_t)bytes + 1);
    if (!buffer) stop("no memory for a program of %llu bytes", (unsigned long long)bytes);
    read_bytes(file, buffer, (size_t)bytes, path);
    ng_prog *program = NULL;
    TRY(ng_prog_load(context, 0, buffer, (size_t)bytes, &program, &fault));
    free(buffer);
    return program;
}

// The argument of this name and its shape; -1 if the program has none.
static int find_argument(const ng_prog *program, const char *name, ng_shape *shape)
{
    for (int i = ARG_WEIGHT; i < ARG_WEIGHT + WEIGHTS; i++) {
        const char *port = NULL;
        TRY(ng_prog_port(program, (uint32_t)i, shape, &port, &fault));
        if (strcmp(port, name) == 0) return i;
    }
    return -1;
}

// Its shape is the program's: a file that says another one is refused before anything is allocated.
static void read_array(FILE *file, struct model *model, const char *path)
{
    char     name[NAME_BYTES + 1] = { 0 };
    uint32_t head[2] = { 0 };
    int64_t  dims[4] = { 0 };
    ng_shape shape = { .size = sizeof shape };
    read_bytes(file, name, NAME_BYTES, path);
    read_bytes(file, head, sizeof head, path);
    const int i = find_argument(model->answer, name, &shape);
    if (i < 0 || model->args[i]) stop("%s: the program has no free argument \"%s\"", path, name);
    if (head[0] != shape.dtype || head[1] != (uint32_t)shape.ndim || shape.ndim > 4)
        stop("%s: %s is of another type or rank than the program wants", path, name);
    read_bytes(file, dims, (size_t)shape.ndim * sizeof *dims, path);
    if (memcmp(dims, shape.dims, (size_t)shape.ndim * sizeof *dims) != 0)
        stop("%s: %s has another shape than the program wants", path, name);

    const size_t bytes = (size_t)shape_bytes(&shape);
    void        *data = malloc(bytes);
    if (!data) stop("no memory for %zu bytes of %s", bytes, name);
    read_bytes(file, data, bytes, path);
    TRY(ng_tensor_create(model->context, &shape, &model->args[i], &fault));
    TRY(ng_tensor_put(model->args[i], data, bytes, &fault));
    free(data);
}

struct model model_load(ng_ctx *context, const char *path)
{
    FILE    *file = fopen(path, "rb");
    char     magic[sizeof MAGIC] = { 0 };
    uint32_t head[2] = { 0 };
    if (!file) stop("cannot open %s; train a network first, with digits --save %s", path, path);
    read_bytes(file, magic, sizeof magic, path);
    if (memcmp(magic, MAGIC, sizeof magic) != 0) stop("%s was not saved by digits", path);
    read_bytes(file, head, sizeof head, path);
    if (head[0] != VERSION || head[1] != WEIGHTS) stop("%s was saved by another version of digits", path);

    struct model model = { .context = context, .answer = read_program(file, context, path) };
    ng_prog_info info = { .size = sizeof info };
    TRY(ng_prog_get_info(model.answer, &info, &fault));
    if (info.nargs != 1 + WEIGHTS || info.nout != 2) stop("%s holds a program that answers no digits", path);
    for (int i = 0; i < WEIGHTS; i++) read_array(file, &model, path);
    fclose(file);
    return model;
}
