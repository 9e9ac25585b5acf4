// One small program of each area of the library, written so that it allocates nothing itself and releases all it was given.
#pragma once
#include <ng.h>

#include <cstdint>

namespace harm {

// What a program leaves: its first failure, or NG_OK and whether its numbers were right.
struct Outcome {
    ng_status   status = NG_OK;
    bool        is_right = false;
    const char* call = "";       // that failed
    ng_error    error{};
};

struct SmallProgram {
    const char* name;
    void      (*run)(ng_ctx* c, Outcome& o);
};
// Of small_operations.cc.
void bindings(ng_ctx* c, Outcome& o);
void indices(ng_ctx* c, Outcome& o);
void large(ng_ctx* c, Outcome& o);
void oracle(ng_ctx* c, Outcome& o);
void rules(ng_ctx* c, Outcome& o);
void windows(ng_ctx* c, Outcome& o);

extern const SmallProgram SMALL_PROGRAMS[];
extern const uint32_t     SMALL_PROGRAM_COUNT;

}  // namespace harm
