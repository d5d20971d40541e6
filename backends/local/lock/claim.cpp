// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/claim.hpp"

#include "backends/local/rules/names.hpp"

namespace dlock::local {

LocalClaim::LocalClaim(ClaimRequest request, Env& env)
    : Claim(std::move(request)), file_name(local::file_name(this->request().name)), signal(env) {}

}  // namespace dlock::local
