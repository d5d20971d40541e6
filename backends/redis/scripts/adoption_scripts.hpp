// SPDX-License-Identifier: Apache-2.0
//
// Grants that change process. Beside the lock stands, for as long as its grant may be adopted, the
// proof that it was exported: who only reads what the lock's key says cannot adopt it. In the
// lock's key the owner is exchanged in one step, so that nobody else ever finds the lock free.
#pragma once

#include <string_view>

namespace dlock::redis {

std::string_view offer_script();
std::string_view adopt_script();

}  // namespace dlock::redis
