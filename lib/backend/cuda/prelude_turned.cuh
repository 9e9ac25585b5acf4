// What lies along another axis than vectors of points do: tiles of it, turned in shared memory.
//
// A tile has 4096 points, SIDE of them along the axis that lies side by side. Its threads, 256, read four lines of four elements side by side each, and
// hand on what comes as fours along the other axis.
template <class T>
struct Lines {
    Vector<T, 4> line[4];
};

DEVICE u32 shifted(u32 low, u32 high, u32 bits) { return (u32)((((u64)high << 32) | low) >> bits); }
// Four elements that lie in two fours of the memory, both of which are there to be read.
template <class T>
DEVICE Vector<T, 4> between_fours(const T* from)
{
    constexpr u32 WORDS = sizeof(T);
    const u32 bytes = (u32)(u64)from % (4 * WORDS), bits = bytes % 4 * 8;
    const Vector<u32, WORDS>* const fours = (const Vector<u32, WORDS>*)((u64)from - bytes);
    const Vector<u32, WORDS> low = fours[0], high = fours[1];
    union {
        u32          words[WORDS];
        Vector<T, 4> all;
    } r;
    if constexpr (WORDS == 1) {
        r.words[0] = shifted(low.e[0], high.e[0], bits);
    } else {
        const bool is_second = bytes >= 4;
        const u32 first = is_second ? low.e[1] : low.e[0], middle = is_second ? high.e[0] : low.e[1], last = is_second ? high.e[1] : high.e[0];
        r.words[0] = shifted(first, middle, bits), r.words[1] = shifted(middle, last, bits);
    }
    return r.all;
}

// Lines are `pitch` apart, their elements `step`; from: the tile's first element, with so many of its line ahead of it; so many elements and lines are
// there from it on.
template <i32 SIDE, class T>
DEVICE void read_lines(Lines<T>& to, const T* from, i32 step, i32 pitch, i32 ahead, i32 elements, i32 lines)
{
    const i32 element = threadIdx.x % (SIDE / 4) * 4, first = threadIdx.x / (SIDE / 4) * 4;
    from += (i64)element * step + (i64)first * pitch, ahead += element, elements -= element, lines -= first;      // the end of a tile may lie behind all
    if (step == 1 && elements >= 4 && ((u64)from | (u64)(pitch * (i64)sizeof(T))) % alignof(Vector<T, 4>) == 0) {
#pragma unroll
        for (i32 l = 0; l < 4; l++)
            if (l < lines) to.line[l] = *(const Vector<T, 4>*)(from + l * pitch);
        return;
    }
    if constexpr (sizeof(T) <= 2) {
        if (step == 1 && ahead >= 4 && elements >= 8) {
#pragma unroll
            for (i32 l = 0; l < 4; l++)
                if (l < lines) to.line[l] = between_fours(from + l * pitch);
            return;
        }
    }
#pragma unroll
    for (i32 l = 0; l < 4; l++) {
#pragma unroll
        for (i32 j = 0; j < 4; j++)
            if (l < lines && j < elements) to.line[l].e[j] = from[l * pitch + j * step];
    }
}

// Where the tile has a four. Fours of a row stand in an order of their own, so that neither those who put one column's there nor those who take one
// row's meet in a bank.
template <i32 SIDE>
DEVICE u32 four_at(u32 row, u32 four) { return row * (1024 / SIDE) + (four ^ row / 4 * (64 / SIDE)); }
template <i32 SIDE, class T>
DEVICE void turn_lines(const Lines<T>& from, Vector<T, 4>* tile)
{
    const u32 row = threadIdx.x % (SIDE / 4) * 4, four = threadIdx.x / (SIDE / 4);
#pragma unroll
    for (i32 j = 0; j < 4; j++) {
        Vector<T, 4> turned;
#pragma unroll
        for (i32 l = 0; l < 4; l++) turned.e[l] = from.line[l].e[j];
        tile[four_at<SIDE>(row, four) + j * (1024 / SIDE)] = turned;
    }
}
template <i32 SIDE, i32 N, class T>
DEVICE Vector<T, N> turned_of(const Vector<T, 4>* tile, u32 row, u32 column)
{
    if constexpr (N <= 4) return *(const Vector<T, N>*)(tile[four_at<SIDE>(row, column / 4)].e + column % 4);
    Vector<T, N> r;
#pragma unroll
    for (i32 k = 0; k < N / 4; k++) {
        const Vector<T, 4> four = tile[four_at<SIDE>(row, column / 4 + k)];
#pragma unroll
        for (i32 j = 0; j < 4; j++) r.e[4 * k + j] = four.e[j];
    }
    return r;
}

// What is read behind a tile is on its way to the second cache meanwhile, by sectors of so many bytes.
#define ASKED_BYTES 32
