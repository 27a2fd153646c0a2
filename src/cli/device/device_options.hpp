// Devices, architectures and engines as the command line names them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "device/device.hpp"
#include "engines/choice.hpp"

namespace kiln::cli {

class Command;  // cli/options.hpp

// Adds --workspace and --engine. An engine's former name is replaced by its present one.
void add_grant_options(Command app, Grant& grant);

// Throws UsageError if no engine has that name. "" stands for every engine and passes.
void check_engine(const std::string& name);

// The device that an option names: "cuda", "cuda:1", "host"; "" is the first GPU. Throws UsageError
// that says "use --device host" where there is no GPU.
std::shared_ptr<Device> device_of(const std::string& name, const char* option = "--device");

// Throws UsageError if the name is none of these. Asks for no GPU.
void check_device_name(const std::string& name, const char* option = "--device");

// The default of --arch: the first GPU's chip (chip_name()), else "sm_90a".
std::string default_architecture();

// The description behind --arch: "sm_80", a chip ("h100-pcie"), or "host". Throws BAD_PARAM.
DeviceDescription architecture_of(const std::string& arch);

// The chip that --arch names; else that of a line's words; else the default. Throws BAD_PARAM.
DeviceDescription chip_of(const std::vector<std::string>& of_the_line, const std::string& arch);

// What --device names; else "host", if lines name chips and all of these are host;
// else "", the first GPU.
std::string device_for(const std::string& device, const std::vector<std::string>& chips);

// Whether a text is "host", or "sm_" with a number and perhaps a letter, and so is safe as a
// compiler's option and in a path.
bool is_architecture_name(std::string_view text);

// Adds --lineinfo, which sets KILN_LINEINFO=1.
void add_line_info_flag(Command app);

}  // namespace kiln::cli
