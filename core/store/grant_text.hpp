// SPDX-License-Identifier: Apache-2.0
//
// The text of an exported grant: which lock, which acquisition, and the secret by which its store
// knows that it was exported. One line of printable ASCII:
//
//   dlock-grant1:TOKEN:STORE:NAME:OWNER:SECRET:CHECK
//
// The store never receives the secret, only its proof: a client that reads the export in the store
// cannot adopt it.
#pragma once

#include <string>
#include <string_view>

#include "dlock/exported_grant.hpp"
#include "dlock/spi/claim.hpp"

namespace dlock::core {

struct GrantText {
  ExportedGrant grant;
  std::string owner_id;
  std::string secret;

  std::string write() const;
  /// Throws as ExportedGrant::read().
  static GrantText read(std::string_view text);
  Adoption adoption() const;
};

/// Returns 32 random digits that cannot be guessed. Throws std::system_error if the system has
/// none.
std::string make_secret();
std::string proof_of(std::string_view secret);

}  // namespace dlock::core
