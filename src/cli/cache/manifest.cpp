#include "cli/cache/manifest.hpp"

#include "cli/device/device_options.hpp"
#include "cli/files.hpp"
#include "core/error.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln::cli {

Manifest read_manifest(const std::string& path, const ManifestDefaults& defaults) {
  return parse_manifest(path, read_problem_file(path), defaults);
}

Manifest parse_manifest(const std::string& name, const std::string& lines,
                        const ManifestDefaults& defaults) {
  Manifest manifest;
  for (const auto& [number, text] : problem_lines(lines)) {
    const std::string place = cat(name, ":", number);
    try {
      for (ReadLine& line : read_line(text, defaults)) {
        std::vector<DeviceDescription> devices;
        if (!defaults.other_devices)
          for (const std::string& chip : line.chips) devices.push_back(architecture_of(chip));
        manifest.entries.push_back({place, std::move(line.problem), std::move(line.name),
                                    std::move(line.chips), std::move(devices),
                                    std::move(line.grant)});
      }
    } catch (const Error& error) {
      constexpr std::size_t most = 300;
      const std::string shown = text.size() <= most ? text : text.substr(0, most) + "...";
      manifest.flaws.push_back(cat(place, ": ", shown, ": ", error.what()));
    }
  }
  return manifest;
}

}  // namespace kiln::cli
