// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/claim.hpp"

#include "backends/local/rules/names.hpp"

namespace dlock::local {

LocalClaim::LocalClaim(ClaimRequest request, Env& env)
    : Claim(std::move(request)), file_name(local::file_name(this->request().name)), signal(env) {}

LocalClaim::LocalClaim(ClaimRequest request, Env& env, std::string its_file)
    : Claim(std::move(request)), file_name(std::move(its_file)), signal(env) {}

}  // namespace dlock::local
