// Reads, shuffles and draws the images of handwritten digits that the digits example learns from.
#define _POSIX_C_SOURCE 200809L
#include "digits.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

uint64_t random_bits(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

double random_uniform(uint64_t *state) { return (double)(int64_t)random_bits(state) * 0x1p-63; }

// The folder of the running program with its last '/', or "" if it cannot be known.
static void folder_of(const char *executable, char *folder)
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_BYTES - 1);
    if (length < 0) {
        length = (ssize_t)strlen(executable);
        if (length >= PATH_BYTES) length = 0;
        memcpy(folder, executable, (size_t)length);
    }
    folder[length] = 0;
    char *slash = strrchr(folder, '/');
    if (slash) slash[1] = 0;
    if (!slash) folder[0] = 0;
}

const char *find_data(const char *executable)
{
    static const char *const places[] = { "digits.txt", "../share/ng/digits.txt", "../share/libng/digits.txt" };
    static char path[2 * PATH_BYTES];
    char folder[PATH_BYTES];
    folder_of(executable, folder);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s", folder, places[i]);
        if (access(path, R_OK) == 0) return path;
    }
    stop("the images, digits.txt, are neither beside this program (%s) nor in ../share/ng from there; say where with --data FILE", folder);
}

// One line: the digit, a space, PIXELS characters 0 .. 9, a .. g.
static bool parse_image(const char *line, uint8_t *pixels, int32_t *label)
{
    static const char shades[] = "0123456789abcdefg";
    if (line[0] < '0' || line[0] > '9' || line[1] != ' ') return false;
    *label = line[0] - '0';
    for (int i = 0; i < PIXELS; i++) {
        const char *shade = line[2 + i] ? strchr(shades, line[2 + i]) : NULL;
        if (!shade) return false;
        pixels[i] = (uint8_t)(shade - shades);
    }
    return line[2 + PIXELS] == '\n' || line[2 + PIXELS] == '\r' || line[2 + PIXELS] == 0;
}

// The rest of a line that had more than the buffer holds.
static void skip_rest(FILE *file, const char *line, size_t room)
{
    const size_t length = strlen(line);
    if (length + 1 < room || line[length - 1] == '\n') return;
    for (int c = fgetc(file); c != EOF && c != '\n';) c = fgetc(file);
}

struct images read_images(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) stop("cannot open %s", path);
    struct images images = { 0 };
    char line[256];
    int room = 0;
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        if (line[0] == '#') {
            skip_rest(file, line, sizeof line);
            continue;
        }
        if (images.count == room) {
            room = room ? 2 * room : 1024;
            images.pixels = realloc(images.pixels, (size_t)room * PIXELS);
            images.labels = realloc(images.labels, (size_t)room * sizeof *images.labels);
            if (!images.pixels || !images.labels) stop("no memory for %d images", room);
        }
        if (!parse_image(line, images.pixels + images.count * PIXELS, images.labels + images.count))
            stop("%s:%d: not \"DIGIT PIXELS\" with %d pixels from 0 to g", path, number, PIXELS);
        images.count++;
    }
    fclose(file);
    if (images.count < 10 * BATCH) stop("%s has %d images; at least %d are needed", path, images.count, 10 * BATCH);
    return images;
}

void free_images(struct images *images)
{
    free(images->pixels);
    free(images->labels);
    *images = (struct images){ 0 };
}

void shuffle_images(struct images *images, uint64_t *state)
{
    for (int i = images->count - 1; i > 0; i--) {
        int      j = (int)(random_bits(state) % (uint64_t)(i + 1));
        int32_t  label = images->labels[i];
        uint8_t  pixels[PIXELS], *a = images->pixels + i * PIXELS, *b = images->pixels + j * PIXELS;
        images->labels[i] = images->labels[j];
        images->labels[j] = label;
        memcpy(pixels, a, PIXELS);
        memmove(a, b, PIXELS);
        memcpy(b, pixels, PIXELS);
    }
}

void draw_images(const struct images *images, const int *which, int count, char (*captions)[24])
{
    static const char *const shades[] = { "  ", "░░", "▒▒", "▓▓", "██" };
    for (int row = 0; row < SIDE; row++) {
        for (int i = 0; i < count; i++) {
            fputs("  ", stdout);
            for (int column = 0; column < SIDE; column++)
                fputs(shades[(images->pixels[which[i] * PIXELS + row * SIDE + column] * 4 + INK / 2) / INK], stdout);
        }
        putchar('\n');
    }
    for (int i = 0; i < count; i++) printf("  %-16s", captions[i]);
    puts("\n");
}
