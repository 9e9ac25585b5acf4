// From a seed to a program that kernels' texts are tried on: its manner, its space, the lengths of its runs, its device.
#include "tests/jit/text_draw.h"

#include <algorithm>

namespace ng::emitted {
namespace {

// Elements of a space: what the emulation computes in a moment.
constexpr int64_t USUAL = 60000, LONG = 260000;

// Where choices change, and beside.
constexpr int64_t LENGTHS[] = {
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 67, 72, 96, 97, 100, 127, 128, 129, 130, 136, 193, 199, 200, 248, 255,
    256, 257, 260, 300, 333, 500, 509, 512, 700, 1000, 1001, 1023, 1024, 1025, 1028, 1500, 2047, 2048, 2049, 2051, 3000, 3001, 4000, 4095, 4096, 4097, 4101,
    5000, 8191, 8192, 8193, 8200, 8301, 10007, 12345, 16384, 16391, 16400, 20000, 20500, 25002, 30003, 32768, 32769, 33000, 40004, 50257, 60000,
};

int64_t count_of(const Lengths& lengths)
{
    int64_t n = 1;
    for (const int64_t l : lengths) n *= std::max<int64_t>(1, l);
    return n;
}

}  // namespace

DrawnProgram TextDrawing::program()
{
    const int64_t manner = dice_.within(0, 99);
    p_.is_dense = dice_.chance(35), p_.is_wild = dice_.chance(10);
    if (manner < 45) usual();
    else if (manner < 78) long_rows();
    else shifted_points();
    return std::move(p_);
}

// All lengths are known in so many of ten programs, none in the rest; between them some.
void TextDrawing::choose_open(int of_ten_known, int of_ten_all)
{
    const int64_t known = dice_.within(0, 9);
    const bool is_first_alone = dice_.chance(40);
    for (size_t a = 0; a < rank(); a++) p_.is_open[a] = known >= of_ten_known && (known >= 10 - of_ten_all || (is_first_alone ? a == 0 : dice_.chance(50)));
}

// Axes in any order, each with what those before it have left; what is open has other lengths in each run.
void TextDrawing::choose_runs(int count, int64_t most, int64_t (TextDrawing::*length)(size_t axis, int64_t most))
{
    if (std::ranges::none_of(p_.is_open, std::identity())) count = 1;
    std::vector<size_t> order(rank());
    for (size_t a = 0; a < rank(); a++) order[a] = a;
    while (int(p_.runs.size()) < count) {
        for (size_t i = rank(); i > 1; i--) std::swap(order[i - 1], order[size_t(dice_.below(i))]);
        Lengths lengths(rank(), 1);
        const bool is_first = p_.runs.empty();
        int64_t left = most;
        for (size_t a = 0; a < rank() && !is_first; a++)
            if (!p_.is_open[a]) left /= lengths[a] = p_.runs[0][a];
        for (const size_t a : order) {
            if (!is_first && !p_.is_open[a]) continue;
            lengths[a] = !is_first && dice_.chance(10) ? dice_.within(0, 1) : (this->*length)(a, std::max<int64_t>(1, left));
            left /= std::max<int64_t>(1, lengths[a]);
        }
        p_.runs.push_back(lengths);
    }
}

void TextDrawing::choose_most(std::initializer_list<int64_t> more, int percent_bounded)
{
    for (size_t a = 0; a < rank(); a++) {
        int64_t most = 0;
        for (const Lengths& l : p_.runs) most = std::max(most, l[a]);
        if (p_.is_open[a]) p_.most.push_back(most + dice_.of(more));
    }
    p_.is_bounded = !p_.most.empty() && dice_.chance(percent_bounded);
}

void TextDrawing::choose_axes()
{
    if (dice_.chance(50)) main_axes_ = {rank() - 1};
    else if (dice_.chance(50)) main_axes_ = {0};
    else
        for (size_t a = 0; a < rank(); a++)
            if (dice_.chance(50) || (a + 1 == rank() && main_axes_.empty())) main_axes_.push_back(a);
}

void TextDrawing::begin(Dtype main)
{
    main_ = main;
    whole_.push_back(operand(input(main, space()), main));
}

int64_t TextDrawing::drawn_length(size_t, int64_t most)
{
    if (dice_.chance(50)) most = std::min(most, dice_.of<int64_t>({4, 40, 300, 3000}));
    const auto end = std::ranges::upper_bound(LENGTHS, most);
    return LENGTHS[dice_.below(size_t(end - LENGTHS))];
}
int64_t TextDrawing::shifted_length(size_t, int64_t most)
{
    return std::min(most, dice_.of<int64_t>({1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 33, 60, 63, 64, 65, 66, 68, 72, 96, 100, 127, 128, 130, 132, 200, 255, 256, 257, 300, 333, 1000, 1025, 3000}));
}
int64_t TextDrawing::column_length(size_t axis, int64_t most)
{
    return std::min(most, axis == 0 ? dice_.within(1, 70) : dice_.of<int64_t>({8, 33, 100, 257, 1000, 2051, 4101, 8200, 16400}));
}

// Anything in a space of up to five axes.
void TextDrawing::usual()
{
    p_.is_open.resize(size_t(dice_.of({1, 2, 2, 2, 2, 3, 3, 4, 5})));
    p_.device = {dice_.of({80, 80, 86, 90, 90, 90, 90, 100}), dice_.of({1, 2, 3, 4, 4, 7, 16, 108, 132}), dice_.of({0, 99, 163, 227, 227, 227}) << 10};
    choose_open(3, 3);
    choose_runs(int(dice_.within(3, 5)), USUAL, &TextDrawing::drawn_length);
    choose_most({0, 0, 5, 1000, 1 << 20}, 60);
    choose_axes();
    if (dice_.chance(25)) p_.turned_bytes = 1;
    if (dice_.chance(15)) p_.fusion = dice_.of({Fusion::Lean, Fusion::None});
    is_whole_ = dice_.chance(12);
    begin(is_whole_ ? dice_.of({Dtype::i32, Dtype::i8, Dtype::i64, Dtype::u8, Dtype::i16})
                    : dice_.of({Dtype::f32, Dtype::f32, Dtype::f32, Dtype::f16, Dtype::f16, Dtype::bf16, Dtype::f64, Dtype::e4m3}));
    for (int64_t i = dice_.of({1, 1, 1, 2, 2, 3}); i > 0; i--) add(output(dice_.of({0, 1, 1, 1, 2, 2, 3})), 12);
}

// Few rows of many points, or columns, that blocks stay with: rings, clusters, parts, one block waiting for another.
void TextDrawing::long_rows()
{
    p_.is_open.resize(dice_.chance(75) ? 2 : 3);
    p_.device = {dice_.chance(85) ? 90 : 80, dice_.of({2, 4, 4, 4, 132}), 227 << 10};
    const bool is_across = dice_.chance(60);
    const size_t read = is_across ? 0 : rank() - 1, kept = is_across ? rank() - 1 : 0;
    Lengths lengths(rank(), dice_.within(1, 3));
    if (is_across) {
        lengths[kept] = dice_.of<int64_t>({32, 36, 40, 44, 52, 60, 64, 68, 72, 96, 100, 128, 136, 176, 256});
        lengths[read] = dice_.chance(50) ? dice_.of<int64_t>({600, 1024, 1025, 1100, 1500, 1536, 2048, 2049, 2100, 3000, 3001, 4096, 9000, 16384}) : dice_.within(700, 4500);
    } else {
        lengths[kept] = dice_.within(1, 7);
        lengths[read] = dice_.chance(50) ? dice_.of<int64_t>({16384, 24000, 25002, 32768, 33332, 40004, 50304, 65536, 65540, 70000, 100008, 100012, 131072, 250000}) : 4 * dice_.within(4000, 60000);
    }
    const int64_t least = is_across ? 32 : 1;
    while (count_of(lengths) > LONG) (lengths[kept] > least ? lengths[kept] : lengths[read]) = std::max(least, (lengths[kept] > least ? lengths[kept] : lengths[read]) / 8 * 4);
    const int64_t open = dice_.within(0, 9);             // none of them, what is kept or first, all
    for (size_t a = 0; a < rank(); a++) p_.is_open[a] = open == 9 || (open == 7 && a == kept) || (open == 8 && a == 0);
    p_.runs.push_back(lengths);
    for (int64_t r = 2; r < 4 && open >= 7; r++) {
        Lengths fewer = lengths;
        for (size_t a = 0; a < rank(); a++)
            if (p_.is_open[a]) fewer[a] = std::max<int64_t>(1, lengths[a] / r - dice_.within(0, 1));
        p_.runs.push_back(fewer);
    }
    choose_most({0, 100}, 50);
    main_axes_ = {read};
    if (rank() == 3 && dice_.chance(30)) main_axes_ = is_across ? std::vector<size_t>{0, 1} : std::vector<size_t>{1, 2};
    begin(dice_.of({Dtype::f32, Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64}));
    if (dice_.chance(20)) whole_.push_back(input(dice_.of({Dtype::f32, main_}), space()));
    add(long_output(), 15);
    for (const int percent : {60, 20})
        if (dice_.chance(percent)) add(beside_long(), 0);
}

// Points whose operands lie across or begin elsewhere, and folds of few columns down many.
void TextDrawing::shifted_points()
{
    p_.is_open.resize(size_t(dice_.of({2, 2, 3, 3, 4})));
    p_.device = {dice_.of({80, 90}), dice_.of({1, 2, 4, 108}), dice_.of({99, 227}) << 10};
    choose_open(5, 2);
    const bool has_folds = dice_.chance(33);
    choose_runs(3, USUAL, has_folds ? &TextDrawing::column_length : &TextDrawing::shifted_length);
    choose_most({0, 0, 5, 1 << 20}, 60);
    main_axes_ = {0};
    if (rank() > 2 && dice_.chance(30)) main_axes_ = {0, 1};
    const Dtype main = dice_.of({Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64, Dtype::i8, Dtype::u8, Dtype::bool_, Dtype::e4m3, Dtype::i16});
    is_whole_ = is_integer(main);
    begin(main);
    for (int64_t i = dice_.within(1, 2); i > 0; i--) add(has_folds ? output(int(dice_.within(0, 2))) : points(), 0);
}

}  // namespace ng::emitted
