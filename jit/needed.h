// What of a prelude a text needs: compilers read all that stands before a kernel, and NVRTC reads for one thread at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ng {

// A text of C in pieces: functions, types and macros that may be left out, and directives that stay. Who calls a function by a
// macro of its own that joins words (##) needs everything.
class Pieces {
  public:
    // What it looks at lives as long. One declaration begins on a line of its own, without a blank before it.
    explicit Pieces(std::string_view prelude);
    // Those that the text names and those that they name, in order.
    std::string needed_by(std::string_view text) const;

  private:
    struct Piece {
        std::string_view text;
        bool stays = false;
        std::vector<uint32_t> needs;             // pieces that declare what it names
    };
    struct Macro { std::vector<std::string_view> parameters; std::string_view body; };
    struct Reading;
    struct Hash : std::hash<std::string_view> { using is_transparent = void; };

    std::string_view all_;
    std::vector<Piece> pieces_;
    std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> names_;     // numbered as they come
    std::vector<std::vector<uint32_t>> declared_;                                // by name: the pieces that do
};

}  // namespace ng
