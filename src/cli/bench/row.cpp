#include "cli/bench/row.hpp"

#include <nlohmann/json.hpp>

#include "cli/format.hpp"
#include "core/text.hpp"

namespace kiln::cli::bench {
namespace {

constexpr const char* columns[] = {"suite",        "layer",     "batch",   "operation",
                                   "direction",    "type",      "layout",  "math",
                                   "contestant",   "kernel",    "clock",   "median_us",
                                   "min_us",       "max_us",    "samples", "tflops",
                                   "gbps",         "flops",     "bytes",   "workspace_bytes",
                                   "relative_rms", "max_error", "note",    "problem"};

std::string number(double value) { return value == 0 ? "" : significant(value, 6); }
std::string count(double value) { return value == 0 ? "" : fixed(value, 0); }
std::string error_text(const std::optional<double>& error) {
  return error ? scientific(*error, 3) : "";
}

// The row's values in the order of `columns`.
std::vector<std::string> values(const Row& row) {
  const Times times = row.times.value_or(Times{});
  return {row.suite,
          row.layer,
          row.batch == 0 ? "" : cat(row.batch),
          row.operation,
          row.direction,
          row.type,
          row.layout,
          row.math,
          row.contestant,
          row.kernel,
          row.host_time ? "host" : "device",
          number(times.median),
          number(times.min),
          number(times.max),
          row.times ? cat(times.samples) : "",
          number(row.teraflops()),
          number(row.gigabytes()),
          count(row.flops),
          count(row.bytes),
          cat(row.workspace),
          error_text(row.relative_rms),
          error_text(row.max_error),
          row.note,
          row.problem};
}

// The beginning of a note, for the table; CSV and JSON have all of it.
std::string brief(const std::string& text) {
  constexpr std::size_t most = 160;
  const std::string line = text.substr(0, text.find('\n'));
  return line.size() <= most ? line : line.substr(0, most) + "...";
}

// Kiln's rate over that of `other`; 0 if there is nothing to compare.
double lead_of(const Row& kiln, const Row& other) {
  if (kiln.flops > 0 && other.flops > 0)
    return other.teraflops() > 0 ? kiln.teraflops() / other.teraflops() : 0;
  return other.gigabytes() > 0 ? kiln.gigabytes() / other.gigabytes() : 0;
}

}  // namespace

double Row::teraflops() const {
  return times && times->median > 0 ? flops / times->median * 1e-6 : 0;
}

double Row::gigabytes() const {
  return times && times->median > 0 ? bytes / times->median * 1e-3 : 0;
}

std::string Row::rate() const {
  if (!times || (flops == 0 && bytes == 0)) return "";
  return flops > 0 ? rate_text(teraflops()) : cat(significant(gigabytes(), 3), " GB/s");
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_header() { return join(columns, ",") + '\n'; }

std::string csv_line(const Row& row) {
  std::vector<std::string> fields = values(row);
  for (std::string& field : fields) field = csv_field(field);
  return join(fields, ",") + '\n';
}

std::string csv_text(const Machine& machine, const std::vector<Row>& rows) {
  std::string text;
  for (const auto& [name, value] : machine) text += cat("# ", name, ": ", value, "\n");
  text += csv_header();
  for (const Row& row : rows) text += csv_line(row);
  return text;
}

nlohmann::ordered_json json_of(const Machine& machine, const std::vector<Row>& rows) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : machine) json["machine"][name] = value;
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json out;
    out["suite"] = row.suite;
    out["layer"] = row.layer;
    out["batch"] = row.batch;
    out["operation"] = row.operation;
    out["direction"] = row.direction;
    out["type"] = row.type;
    out["layout"] = row.layout;
    out["math"] = row.math;
    out["contestant"] = row.contestant;
    out["kernel"] = row.kernel;
    out["clock"] = row.host_time ? "host" : "device";
    if (row.times) {
      out["time_us"] = {{"median", row.times->median},
                        {"min", row.times->min},
                        {"max", row.times->max},
                        {"samples", row.times->samples}};
      if (row.flops > 0) out["tflops"] = row.teraflops();
      if (row.bytes > 0) out["gbps"] = row.gigabytes();
    }
    out["flops"] = row.flops;
    out["bytes"] = row.bytes;
    out["workspace_bytes"] = row.workspace;
    if (row.relative_rms) out["errors"]["relative_rms"] = *row.relative_rms;
    if (row.max_error) out["errors"]["max"] = *row.max_error;
    out["note"] = row.note;
    out["problem"] = row.problem;
    json["rows"].push_back(std::move(out));
  }
  return json;
}

std::string table_headline(const Row& row) {
  std::string text = cat(row.suite, " ", row.layer);
  if (row.batch > 0) text += cat(" N=", row.batch);
  for (const std::string* part : {&row.direction, &row.type, &row.layout, &row.math})
    if (!part->empty()) text += cat(" ", *part);
  return text + '\n';
}

std::string table_line(const Row& row, const Row* kiln) {
  std::string text = cat("  ", padded(row.contestant, 17), " ");
  if (!row.times) return text + brief(row.note) + '\n';
  text += cat(
      padded(significant(row.times->median, 4), 9), " us ",
      padded(cat("(", significant(row.times->min, 4), " to ", significant(row.times->max, 4), ")"),
             20),
      " ", padded(row.rate(), 14));
  const double lead = kiln == nullptr || kiln == &row ? 0 : lead_of(*kiln, row);
  text += padded(lead > 0 ? cat(fixed(lead, 2), "x") : "", 8);
  text += padded(row.relative_rms ? cat("rel ", scientific(*row.relative_rms, 1)) : "", 13);
  if (row.workspace > 0) text += cat("+", bytes_text(row.workspace), "  ");
  text += row.kernel;
  if (!row.note.empty()) text += cat("  [", brief(row.note), "]");
  return text + '\n';
}

}  // namespace kiln::cli::bench
