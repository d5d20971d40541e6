// SPDX-License-Identifier: Apache-2.0
//
// The interface of the local store to the rest of dlock: its schemes, its options, and its factory.
#include "dlock/spi/options.hpp"
#include "backends/local/backend.hpp"
#include "dlock/local.hpp"
#include "dlock/spi/descriptor.hpp"

namespace dlock::local {
namespace {

std::unique_ptr<Backend> create(const StoreOptions& options, Env& env, EventSink& sink) {
  if (options.path.empty()) {
    refuse_option(options, {}, "the URL names no directory: write file:///var/lib/app/locks");
  }
  return std::make_unique<LocalBackend>(options, env, sink);
}

BackendDescriptor describe() {
  BackendDescriptor descriptor;
  descriptor.name = "local";
  descriptor.schemes = {"file", "local"};
  descriptor.address = BackendDescriptor::Address::path;
  OptionSpec trust;
  trust.name = "trust_filesystem";
  trust.kind = OptionSpec::Kind::boolean;
  trust.default_value = "false";
  trust.help = "use a file system that is not known to keep locks for all (network, FUSE)";
  OptionSpec mode;
  mode.name = "mode";
  mode.help = "the mode of new files, in octal, whatever the umask: 0660 for a group's directory";
  descriptor.options = {trust, mode, cache_option(), max_queue_option()};
  descriptor.create = create;
  descriptor.has_shared_mode = true;
  descriptor.has_permits = true;
  descriptor.why_no_adoption =
      "a claim is the kernel's lock on a file that its process has open: it ends with that "
      "process, "
      "and no text can pass it to another";
  return descriptor;
}

}  // namespace

const BackendDescriptor& backend() {
  static const BackendDescriptor descriptor = describe();
  return descriptor;
}

}  // namespace dlock::local
