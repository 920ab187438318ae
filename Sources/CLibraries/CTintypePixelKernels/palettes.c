// SPDX-License-Identifier: Apache-2.0

#include "palettes.h"

#include <string.h>

#include "dispatch.h"

// Debug builds compile this code without optimisation, and it must still be fast. So vectors are explicit, values that
// are often read are in local variables, and loops over pixels contain small functions inlined by hand.

enum { SIDE = 32, SUM_SIDE = SIDE + 1, LANES = 16 };
_Static_assert(SIDE *SIDE *SIDE == cpixels_cell_count, "cells");
_Static_assert(SUM_SIDE *SUM_SIDE *SUM_SIDE == cpixels_sum_count, "sums");

static const uint32_t OPAQUE = 0xFF000000;
// Fibonacci hashing: the high bits of the product are well mixed.
static const uint32_t HASH_FACTOR = 0x9E3779B1;

// MARK: Rows

void cpixels_pack_pixels(const uint8_t *samples, size_t channels, uint32_t *pixels, size_t count) {
    if (channels == 4) {
        memcpy(pixels, samples, count * 4);
    } else if (channels == 3) {
        for (size_t column = 0; column < count; column++, samples += 3) {
            pixels[column] = OPAQUE | (uint32_t)samples[2] << 16 | (uint32_t)samples[1] << 8 | samples[0];
        }
    } else {
        for (size_t column = 0; column < count; column++) pixels[column] = OPAQUE | 0x010101u * samples[column];
    }
}

void cpixels_cut_alpha(uint32_t *pixels, size_t count, uint8_t least_alpha) {
    uint32_t least = (uint32_t)least_alpha << 24;
    for (size_t column = 0; column < count; column++) {
        uint32_t pixel = pixels[column];
        pixels[column] = pixel >= least ? pixel | OPAQUE : 0;
    }
}

void cpixels_keep_changes(uint32_t *pixels, const uint32_t *before, size_t count) {
    for (size_t column = 0; column < count; column++) {
        uint32_t pixel = pixels[column];
        pixels[column] = pixel == before[column] ? 0 : pixel;
    }
}

bool cpixels_has_zero(const uint32_t *pixels, size_t count) {
    size_t column = 0;
    while (column < count && pixels[column] != 0) column++;
    return column < count;
}

struct cpixels_columns cpixels_find_changes(const uint32_t *first, const uint32_t *second, size_t count) {
    struct cpixels_columns found = {0, 0};
    if (memcmp(first, second, count * 4) == 0) return found;
    while (first[found.start] == second[found.start]) found.start++;
    found.end = count;
    while (first[found.end - 1] == second[found.end - 1]) found.end--;
    return found;
}

struct cpixels_columns cpixels_find_cleared(const uint32_t *first, const uint32_t *second, size_t count) {
    struct cpixels_columns found = {0, 0};
    size_t start = 0, end = count;
    while (start < count && (second[start] != 0 || first[start] == 0)) start++;
    if (start == count) return found;
    while (second[end - 1] != 0 || first[end - 1] == 0) end--;
    found.start = start;
    found.end = end;
    return found;
}

// MARK: Distinct colours

/// Returns the slot that contains a colour, or the free slot for it.
static size_t place_of(uint32_t color, const uint32_t *colors, const int16_t *places) {
    size_t place = color * HASH_FACTOR >> 22;
    while (places[place] >= 0 && colors[places[place]] != color) place = (place + 1) % cpixels_color_places;
    return place;
}

bool cpixels_collect_colors(
    const uint32_t *pixels, size_t count, bool skips_zero, uint32_t *colors, size_t *color_count, int16_t *places) {
    // The last colour is always in the set or skipped.
    bool has_last = skips_zero;
    uint32_t last = 0;
    for (size_t column = 0; column < count; column++) {
        uint32_t pixel = pixels[column];
        if (pixel == last && has_last) continue;
        has_last = true;
        last = pixel;
        if (pixel == 0 && skips_zero) continue;
        size_t place = place_of(pixel, colors, places);
        if (places[place] >= 0) continue;
        if (*color_count == cpixels_most_colors) return false;
        places[place] = (int16_t)*color_count;
        colors[*color_count] = pixel;
        *color_count += 1;
    }
    return true;
}

void cpixels_index_colors(
    const uint32_t *pixels, size_t count, const uint32_t *colors, const int16_t *places, uint8_t missing,
    uint8_t *indices) {
    if (count == 0) return;
    uint32_t last = ~pixels[0];
    uint8_t last_index = missing;
    for (size_t column = 0; column < count; column++) {
        uint32_t pixel = pixels[column];
        if (pixel != last) {
            int16_t index = places[place_of(pixel, colors, places)];
            last = pixel;
            last_index = index < 0 ? missing : (uint8_t)index;
        }
        indices[column] = last_index;
    }
}

// MARK: The nearest colour

typedef float floats __attribute__((vector_size(LANES * 4)));
typedef int32_t ints __attribute__((vector_size(LANES * 4)));

struct search {
    /// One channel of `LANES` colours in each vector.
    floats reds[256 / LANES], greens[256 / LANES], blues[256 / LANES];
    int32_t group_count;
};

static void prepare_search(struct search *search, const uint32_t *colors, size_t count) {
    search->group_count = (int32_t)((count + LANES - 1) / LANES);
    for (size_t index = 0; index < (size_t)search->group_count * LANES; index++) {
        size_t group = index / LANES, lane = index % LANES;
        // Slots without a colour are farther away than any colour.
        bool is_color = index < count;
        search->reds[group][lane] = is_color ? (float)(colors[index] & 255) : 10000;
        search->greens[group][lane] = is_color ? (float)(colors[index] >> 8 & 255) : 0;
        search->blues[group][lane] = is_color ? (float)(colors[index] >> 16 & 255) : 0;
    }
}

/// Returns the index of the nearest colour by squared distance. Among equals, the colour in the lowest lane wins.
INLINE int32_t nearest(const struct search *search, float red, float green, float blue) {
    floats distances = search->reds[0] - red, others = search->greens[0] - green;
    distances = distances * distances + others * others;
    others = search->blues[0] - blue;
    distances = distances + others * others;
    ints groups = {0};
    int32_t group_count = search->group_count;
    for (int32_t group = 1; group < group_count; group++) {
        floats reds = search->reds[group] - red, greens = search->greens[group] - green;
        floats blues = search->blues[group] - blue;
        floats found = reds * reds + greens * greens + blues * blues;
        ints is_nearer = found < distances;
        distances = (floats)((is_nearer & (ints)found) | (~is_nearer & (ints)distances));
        groups = (is_nearer & group) | (~is_nearer & groups);
    }
    int32_t lane = 0;
    float least = distances[0];
    for (int32_t other = 1; other < LANES; other++) {
        float distance = distances[other];
        lane = distance < least ? other : lane;
        least = distance < least ? distance : least;
    }
    return groups[lane] * LANES + lane;
}

// MARK: Choosing colours

void cpixels_count_pixels(struct cpixels_cell *cells, const uint32_t *pixels, size_t count) {
    for (size_t column = 0; column < count; column++) {
        uint32_t pixel = pixels[column];
        if (pixel == 0) continue;
        uint32_t red = pixel & 255, green = pixel >> 8 & 255, blue = pixel >> 16 & 255;
        struct cpixels_cell *cell = cells + ((red >> 3) * SIDE * SIDE + (green >> 3) * SIDE + (blue >> 3));
        cell->red += red;
        cell->green += green;
        cell->blue += blue;
        cell->count += 1;
        cell->squares += red * red + green * green + blue * blue;
    }
}

INLINE void add(struct cpixels_cell *sum, const struct cpixels_cell *cell) {
    sum->red += cell->red;
    sum->green += cell->green;
    sum->blue += cell->blue;
    sum->count += cell->count;
    sum->squares += cell->squares;
}

INLINE void subtract(struct cpixels_cell *sum, const struct cpixels_cell *cell) {
    sum->red -= cell->red;
    sum->green -= cell->green;
    sum->blue -= cell->blue;
    sum->count -= cell->count;
    sum->squares -= cell->squares;
}

/// Returns the rounded mean of pixels, opaque.
static uint32_t mean(const struct cpixels_cell *sum) {
    if (sum->count <= 0) return OPAQUE;
    int64_t half = sum->count / 2;
    // `half` may be rounded down, because no mean of an odd number of pixels is halfway between two levels.
    uint32_t red = (uint32_t)((sum->red + half) / sum->count);
    uint32_t green = (uint32_t)((sum->green + half) / sum->count);
    uint32_t blue = (uint32_t)((sum->blue + half) / sum->count);
    return OPAQUE | blue << 16 | green << 8 | red;
}

/// A box of cells, from `lower` (exclusive) to `upper` (inclusive).
struct box {
    int32_t lower[3], upper[3];
};

INLINE const struct cpixels_cell *corner(const struct cpixels_cell *sums, int32_t red, int32_t green, int32_t blue) {
    return sums + (red * SUM_SIDE + green) * SUM_SIDE + blue;
}

/// Returns the sum over a box, from its eight corners.
static struct cpixels_cell total(const struct cpixels_cell *sums, const struct box *box) {
    const int32_t *low = box->lower, *high = box->upper;
    struct cpixels_cell total = *corner(sums, high[0], high[1], high[2]);
    subtract(&total, corner(sums, low[0], high[1], high[2]));
    subtract(&total, corner(sums, high[0], low[1], high[2]));
    subtract(&total, corner(sums, high[0], high[1], low[2]));
    add(&total, corner(sums, low[0], low[1], high[2]));
    add(&total, corner(sums, low[0], high[1], low[2]));
    add(&total, corner(sums, high[0], low[1], low[2]));
    subtract(&total, corner(sums, low[0], low[1], low[2]));
    return total;
}

/// Returns the part of the sum of squares that the mean explains.
static double explained(const struct cpixels_cell *sum) {
    double red = (double)sum->red, green = (double)sum->green, blue = (double)sum->blue;
    return (red * red + green * green + blue * blue) / (double)sum->count;
}

/// Returns the total squared distance of a box's pixels from their mean.
static double box_error(const struct cpixels_cell *sums, const struct box *box) {
    struct cpixels_cell sum = total(sums, box);
    if (sum.count <= 1) return 0;
    double error = (double)sum.squares - explained(&sum);
    return error > 0 ? error : 0;
}

/// Cuts a box into two with the least total error. Returns false if all its pixels are in one cell.
static bool cut(const struct cpixels_cell *sums, const struct box *box, struct box *first, struct box *second) {
    struct cpixels_cell whole = total(sums, box);
    double best = 0;
    int32_t best_channel = 0, best_place = 0;
    for (int32_t channel = 0; channel < 3; channel++) {
        struct box part = *box;
        for (int32_t place = box->lower[channel] + 1; place < box->upper[channel]; place++) {
            part.upper[channel] = place;
            struct cpixels_cell sum = total(sums, &part), rest = whole;
            subtract(&rest, &sum);
            if (sum.count <= 0 || rest.count <= 0) continue;
            double value = explained(&sum) + explained(&rest);
            if (value <= best) continue;
            best = value;
            best_channel = channel;
            best_place = place;
        }
    }
    if (best <= 0) return false;
    *first = *second = *box;
    first->upper[best_channel] = best_place;
    second->lower[best_channel] = best_place;
    return true;
}

/// Computes cumulative sums of the cells.
static void add_up(const struct cpixels_cell *cells, struct cpixels_cell *sums) {
    for (int32_t red = 1; red <= SIDE; red++) {
        struct cpixels_cell areas[SUM_SIDE] = {{0}};
        for (int32_t green = 1; green <= SIDE; green++) {
            struct cpixels_cell line = {0};
            for (int32_t blue = 1; blue <= SIDE; blue++) {
                add(&line, cells++);
                add(areas + blue, &line);
                size_t place = (size_t)((red * SUM_SIDE + green) * SUM_SIDE + blue);
                sums[place] = sums[place - SUM_SIDE * SUM_SIDE];
                add(sums + place, areas + blue);
            }
        }
    }
}

size_t cpixels_cut_boxes(
    const struct cpixels_cell *cells, struct cpixels_cell *sums, size_t maximum, uint32_t *colors) {
    struct box boxes[256];
    double errors[256];
    size_t count = 1;
    add_up(cells, sums);
    for (int32_t channel = 0; channel < 3; channel++) {
        boxes[0].lower[channel] = 0;
        boxes[0].upper[channel] = SIDE;
    }
    errors[0] = box_error(sums, boxes);
    if (maximum > 256) maximum = 256;
    while (count < maximum) {
        size_t worst = 0;
        for (size_t index = 1; index < count; index++) worst = errors[index] > errors[worst] ? index : worst;
        if (errors[worst] <= 0) break;
        struct box whole = boxes[worst];
        if (!cut(sums, &whole, boxes + worst, boxes + count)) {
            errors[worst] = 0;
            continue;
        }
        errors[worst] = box_error(sums, boxes + worst);
        errors[count] = box_error(sums, boxes + count);
        count += 1;
    }
    for (size_t index = 0; index < count; index++) {
        struct cpixels_cell sum = total(sums, boxes + index);
        colors[index] = mean(&sum);
    }
    return count;
}

KERNEL bool cpixels_move_colors(const struct cpixels_cell *cells, uint32_t *colors, size_t count) {
    struct search search;
    struct cpixels_cell sums[256];
    memset(sums, 0, sizeof(sums));
    prepare_search(&search, colors, count);
    for (size_t index = 0; index < cpixels_cell_count; index++) {
        const struct cpixels_cell *cell = cells + index;
        if (cell->count == 0) continue;
        double pixels = (double)cell->count;
        float red = (float)((double)cell->red / pixels), green = (float)((double)cell->green / pixels);
        float blue = (float)((double)cell->blue / pixels);
        add(sums + nearest(&search, red, green, blue), cell);
    }
    bool has_moved = false;
    for (size_t index = 0; index < count; index++) {
        if (sums[index].count == 0) continue;
        uint32_t moved = mean(sums + index);
        has_moved = has_moved || moved != colors[index];
        colors[index] = moved;
    }
    return has_moved;
}

KERNEL double cpixels_palette_error(const struct cpixels_cell *cells, const uint32_t *colors, size_t count) {
    struct search search;
    prepare_search(&search, colors, count);
    double error = 0, pixel_count = 0;
    for (size_t index = 0; index < cpixels_cell_count; index++) {
        const struct cpixels_cell *cell = cells + index;
        if (cell->count == 0) continue;
        double pixels = (double)cell->count;
        float mean_red = (float)((double)cell->red / pixels), mean_green = (float)((double)cell->green / pixels);
        float mean_blue = (float)((double)cell->blue / pixels);
        uint32_t color = colors[nearest(&search, mean_red, mean_green, mean_blue)];
        int64_t red = color & 255, green = color >> 8 & 255, blue = color >> 16 & 255;
        // Compute the squared distances of all pixels from one colour, using the sums of the cell.
        int64_t mixed = red * cell->red + green * cell->green + blue * cell->blue;
        int64_t square = red * red + green * green + blue * blue;
        error += (double)(cell->squares - 2 * mixed + cell->count * square);
        pixel_count += pixels;
    }
    return pixel_count > 0 && error > 0 ? error / pixel_count : 0;
}

// MARK: Mapping

typedef int32_t levels __attribute__((vector_size(16)));

struct cpixels_palette {
    struct search search;
    uint32_t colors[256];
    /// The colours of recent look-ups, which often repeat. Zero marks a free slot.
    uint32_t cached_colors[cpixels_cached_colors];
    uint8_t cached_indices[cpixels_cached_colors];
};

size_t cpixels_palette_size(void) {
    return sizeof(struct cpixels_palette);
}

void cpixels_palette_prepare(struct cpixels_palette *palette, const uint32_t *colors, size_t count) {
    memset(palette, 0, sizeof(*palette));
    prepare_search(&palette->search, colors, count);
    memcpy(palette->colors, colors, count * sizeof(*colors));
}

/// Returns the index of the colour nearest to an opaque pixel.
INLINE uint8_t nearest_cached(struct cpixels_palette *palette, uint32_t pixel) {
    uint32_t slot = pixel * HASH_FACTOR >> 18;
    if (palette->cached_colors[slot] != pixel) {
        float red = (float)(pixel & 255), green = (float)(pixel >> 8 & 255), blue = (float)(pixel >> 16 & 255);
        palette->cached_indices[slot] = (uint8_t)nearest(&palette->search, red, green, blue);
        palette->cached_colors[slot] = pixel;
    }
    return palette->cached_indices[slot];
}

KERNEL void cpixels_map_row(
    struct cpixels_palette *palette, const uint32_t *pixels, size_t count, uint8_t transparent, uint8_t *indices) {
    for (size_t column = 0; column < count; column++) {
        uint32_t pixel = pixels[column];
        indices[column] = pixel == 0 ? transparent : nearest_cached(palette, pixel);
    }
}

INLINE levels levels_of(uint32_t pixel) {
    levels result = {(int32_t)(pixel & 255), (int32_t)(pixel >> 8 & 255), (int32_t)(pixel >> 16 & 255), 0};
    return result;
}

INLINE levels clamped(levels values, levels low, levels high) {
    return __builtin_elementwise_min(__builtin_elementwise_max(values, low), high);
}

KERNEL void cpixels_dither_row(
    struct cpixels_palette *palette, const uint32_t *pixels, size_t count, uint8_t transparent, bool is_reversed,
    const int32_t *errors, int32_t *next_errors, uint8_t *indices) {
    const levels none = {0}, most = none + 255, half = none + 8;
    // Limit the error, because an error outside the palette's range would grow without end.
    const levels limit = none + 64;
    ptrdiff_t step = is_reversed ? -1 : 1;
    ptrdiff_t column = is_reversed ? (ptrdiff_t)count - 1 : 0;
    // The errors that move from the previous pixel to this one, and to the next row: to the column behind, and to this
    // one.
    levels carried = none, behind = none, below = none;
    memset(next_errors, 0, (count + 2) * sizeof(levels));
    for (size_t done = 0; done < count; done++, column += step) {
        uint32_t pixel = pixels[column];
        levels error = none;
        uint8_t index = transparent;
        if (pixel != 0) {
            levels above;
            memcpy(&above, errors + 4 * (column + 1), sizeof(above));
            levels wanted = levels_of(pixel) + ((above + carried + half) >> 4);
            levels shown = clamped(wanted, none, most);
            uint32_t color = OPAQUE | (uint32_t)shown[2] << 16 | (uint32_t)shown[1] << 8 | (uint32_t)shown[0];
            index = nearest_cached(palette, color);
            error = clamped(wanted - levels_of(palette->colors[index]), none - limit, limit);
        }
        indices[column] = index;
        carried = error * 7;
        behind += error * 3;
        memcpy(next_errors + 4 * (column + 1 - step), &behind, sizeof(behind));
        behind = below + error * 5;
        below = error;
    }
    if (count > 0) memcpy(next_errors + 4 * (column + 1 - step), &behind, sizeof(behind));
}
