// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::cli {

std::string fixed(double value, int decimals);       // fixed(21.34, 1) == "21.3"
std::string significant(double value, int digits);   // significant(0.01234, 3) == "0.0123"
std::string scientific(double value, int decimals);  // scientific(1.23e-7, 1) == "1.2e-07"
std::string bytes_text(std::uint64_t bytes);         // "3.4 MiB"
std::string rate_text(double teraflops);             // "37.5 TFLOP/s", "1.25 MFLOP/s"
std::string duration_text(double seconds);           // "1m03s"
std::string padded(std::string text, std::size_t width);

}  // namespace kiln::cli
