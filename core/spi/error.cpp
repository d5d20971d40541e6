// SPDX-License-Identifier: Apache-2.0
#include "core/spi/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "dlock/detail/out_of_memory.hpp"

namespace dlock::inline v0 {
namespace {

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "dlock"; }
  std::string message(int value) const override { return text(static_cast<errc>(value)); }

 private:
  static const char* text(errc value) noexcept {
    switch (value) {
      case errc::timed_out:
        return "not obtained in time";
      case errc::cancelled:
        return "stopped by the caller";
      case errc::lock_lost:
        return "the lock was lost";
      case errc::not_holder:
        return "held by another client, or by none";
      case errc::unavailable:
        return "the store is out of reach";
      case errc::closed:
        return "the lock manager is closed, or belongs to the parent process";
      case errc::invalid_name:
        return "not a lock name";
      case errc::invalid_argument:
        return "an argument is refused";
      case errc::config_invalid:
        return "the configuration cannot be used";
      case errc::config_unsafe:
        return "not safe as configured";
      case errc::not_supported:
        return "this store cannot do that";
      case errc::access_denied:
        return "the store refused access";
      case errc::protocol:
        return "the server's answer was not understood";
      case errc::operation_not_permitted:
        return "the calling thread does not own the mutex";
      case errc::not_found:
        return "nobody holds it";
      case errc::stale_token:
        return "a higher token has been seen: this grant is no longer the newest";
      case errc::token_regressed:
        return "the store's tokens have gone back";
      case errc::invalid_sequencer:
        return "not a sequencer";
      case errc::corrupt_file:
        return "the file is not as it was written";
      case errc::moving:
        return "a migration moves this lock to another store";
      case errc::not_configured:
        return "a migration names a store that is not configured here";
      case errc::queue_full:
        return "too many wait for it already";
      case errc::newer_format:
        return "a newer version of dlock wrote it";
      case errc::no_gate:
        return "the migration's gate is not there";
    }
    return "unknown dlock error";
  }
};

std::string sentence_head(const Diagnostics& diagnostics) {
  std::string head;
  if (!diagnostics.lock.empty()) head = fmt::format("lock '{}'", diagnostics.lock);
  if (!diagnostics.store.empty()) {
    head += fmt::format("{}store '{}'", head.empty() ? "" : ", ", diagnostics.store);
  }
  if (!diagnostics.server_text.empty()) {
    head += fmt::format("{}{}", head.empty() ? "" : ": ", diagnostics.server_text);
  }
  return head;
}

}  // namespace

const boost::system::error_category& dlock_category() noexcept {
  // Never destroyed: codes of static storage may be asked after that.
  alignas(Category) static unsigned char place[sizeof(Category)];
  static const auto* const category = ::new (place) Category();
  return *category;
}

LockError::LockError(error_code ec, Diagnostics diagnostics)
    : system_error(ec, sentence_head(diagnostics)), diagnostics_(std::move(diagnostics)) {}

errc portable(const error_code& ec) noexcept {
  const auto condition = ec.default_error_condition();
  return condition.category() == dlock_category() && condition.value() != 0
             ? static_cast<errc>(condition.value())
             : errc::protocol;
}

Failure failure_of(const std::exception& error) {
  end_if_out_of_memory(error);
  const auto* const of_system = dynamic_cast<const std::system_error*>(&error);
  return make_failure(of_system != nullptr ? errc::unavailable : errc::protocol, error.what());
}

std::string system_text(int error_number) {
  auto text = std::generic_category().message(error_number);
  if (error_number == EMFILE) text += ": no descriptor is left, see RLIMIT_NOFILE (ulimit -n)";
  if (error_number == ENFILE) text += ": no descriptor is left in the system, see fs.file-max";
  if (error_number == EAGAIN) text += ": no thread can be made, see RLIMIT_NPROC and pids.max";
  return text;
}

Failure not_adoptable(std::optional<std::uint64_t> holder, std::uint64_t exported) {
  constexpr auto gone = errc::not_holder;
  if (!holder) {
    return make_failure(gone,
                        "the grant is gone: it was given back, or its lease is over, and "
                        "no client holds the lock");
  }
  if (*holder == exported) {
    return make_failure(gone,
                        "the grant cannot be adopted any more: the time for that is over "
                        "(within), and it is about to be given back");
  }
  if (*holder == 0) {
    return make_failure(gone, "the grant was adopted before, or is over: another holds the lock");
  }
  return make_failure(gone,
                      fmt::format("the grant was adopted before, or is over: the lock is held "
                                  "with token {} now, and it had {}",
                                  *holder, exported));
}

Failure unaware_holder() {
  return make_failure(
      errc::not_supported,
      "its holder is another program, or an older dlock, and would not notice the "
      "mark; --now (EvictOptions::at_once) frees the lock at once, while its holder "
      "may still work");
}

}  // namespace dlock::inline v0

namespace dlock::core {

error_code told_code(errc error, const Failure& cause) noexcept {
  return cause.error && portable(cause.error) == error ? cause.error : make_error_code(error);
}

}  // namespace dlock::core
