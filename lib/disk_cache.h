// Compiled kernels kept on disk for all processes of a user: what is found is right, or nothing is found.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ng {

using Digest = std::array<uint8_t, 32>;

// BLAKE2s of 256 bits without a key (Aumasson, Neves, Wilcox-O'Hearn & Winnerlein 2013; RFC 7693).
class Blake2s {
  public:
    Blake2s() noexcept;
    void   update(std::span<const char> bytes) noexcept;
    Digest finish() noexcept;   // once, last

  private:
    void compress(bool is_last) noexcept;

    std::array<uint32_t, 8> state_;
    std::array<uint8_t, 64> block_{};
    size_t                  held_ = 0;    // bytes in block_; a full one waits, for the last block is marked as such
    uint64_t                count_ = 0;   // bytes so far
};

// What a kernel is: its text, options, the compiler's version, the architecture. Each part counts with its length, so
// ("ab", "c") is not ("a", "bc").
Digest cache_key(std::initializer_list<std::string_view> parts) noexcept;

//   BASE/1/KEY.ngk            BASE is the cache_dir of the caller or of NG_CACHE_DIR
//   BASE/ng/1/KEY.ngk         BASE is XDG_CACHE_HOME or HOME/.cache
//   BASE/.../temp-NUMBER      what is being written; removed a minute after its writer died, with the next store
//
//   file   "NGKC" | 1, 4 bytes | key, 32 | payload's length, 8 | payload's hash, 32 | payload      least byte first
//
// BASE is the user's word: followed wherever it leads. The folders below it and the files in them are ours: a link, what
// another user owns, what others may write, what is no plain file or not whole is passed over as if it were not there,
// and is never waited for. Nothing is kept open between two calls, so a host may close all descriptors, fork, or delete
// the folder. Any number of threads and processes at once; nothing is locked: a file appears whole, by rename.
class DiskCache {
  public:
    static constexpr uint64_t LIMIT_BYTES = uint64_t(256) << 20;

    DiskCache() = default;   // no files
    // cache_dir as in ng_ctx_desc: NULL for the user's own (S10), "" for no files. NG_CACHE_DIR says the same by the same
    // rules. A home or an XDG_CACHE_HOME that is another user's, as after sudo, is not the user's own. Makes nothing yet.
    static DiskCache open(const char* cache_dir, uint64_t limit_bytes = LIMIT_BYTES) noexcept;

    bool has_folder() const noexcept { return !base_.empty(); }
    // Where the files are, or would be; "" when there are none.
    std::string folder() const;

    // What was stored, to the byte. A hit is marked as used, at most once a day.
    std::optional<std::vector<char>> load(const Digest& key) const noexcept;
    // Makes the folders; then removes what was used least recently until no more than the limit is left. Processes that
    // store at once may exceed it by what they store; the last of them sets it right. Silent when it cannot be done.
    void store(const Digest& key, std::span<const char> payload) const noexcept;
    // What our files take now, those being written included.
    uint64_t bytes() const noexcept;

  private:
    int open_folder(bool may_make) const noexcept;   // -1: none that may be trusted

    std::string base_;                  // absolute; empty: no files
    size_t      given_ = 0;             // so many bytes at the head of base_ are never made: a home
    bool        is_shared_ = false;     // base_ is every program's: ours is "ng" in it
    uint64_t    limit_bytes_ = LIMIT_BYTES;
};

}  // namespace ng
