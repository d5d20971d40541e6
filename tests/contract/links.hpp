// SPDX-License-Identifier: Apache-2.0
//
// The fixture of what the contract asks of stores behind a link that can break.
#pragma once

#include <optional>
#include <string>

#include "testkit/fault_proxy.hpp"
#include "tests/contract/contract.hpp"

namespace dlock::contract {

class ContractOfLinks : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    proxy_.emplace(harness().port());
  }
  /// A manager behind the proxy.
  LockManager proxied() const { return proxied(url()); }
  LockManager proxied(std::string through) const {
    const auto port = std::to_string(harness().port());
    through.replace(through.find(port), port.size(), std::to_string(proxy_->port()));
    return LockManager::open(through, open_options());
  }

  std::optional<testkit::FaultProxy> proxy_;
};

}  // namespace dlock::contract
