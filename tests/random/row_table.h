// The rows of ops.def as the random programs see them: a function of the C face, its rules, its reference.
#pragma once
#include "tests/random/column.h"

namespace programs {

enum class RowClass : uint8_t { Map, Fold, Stat, Norm };
enum class Domain : uint8_t { Any, Keep, Real, Bits, Logic };

struct Row {
    std::string name;
    RowClass    kind;
    int         arity;
    Domain      domain;
    bool        gives_bool;
    double      ulp;
    Column      column;                                   // of maps
    ng_expr*  (*one)(ng_expr*) = nullptr;                 // of which one is set
    ng_expr*  (*two)(ng_expr*, ng_expr*) = nullptr;
    ng_expr*  (*three)(ng_expr*, ng_expr*, ng_expr*) = nullptr;
    ng_expr*  (*reduce)(ng_expr*, ng_axes, uint32_t) = nullptr;
    ng_expr*  (*norm)(ng_expr*, ng_axes) = nullptr;
};

struct Table {
    std::vector<Row> rows;
    std::vector<int> maps, reductions, norms;             // places in rows
    Table();                                              // throws std::runtime_error where a column cannot be read
};

}  // namespace programs
