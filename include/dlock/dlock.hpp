// SPDX-License-Identifier: Apache-2.0
//
// Everything a user of locks needs, without Asio. Coroutines: <dlock/async.hpp> too.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include "dlock/capabilities.hpp"
#include "dlock/config.hpp"
#include "dlock/distributed_lock.hpp"
#include "dlock/duration.hpp"
#include "dlock/error.hpp"
#include "dlock/exported_grant.hpp"
#include "dlock/fenced_register.hpp"
#include "dlock/leader.hpp"
#include "dlock/linked_stop.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/mode.hpp"
#include "dlock/mutex.hpp"
#include "dlock/options.hpp"
#include "dlock/schedule.hpp"
#include "dlock/section.hpp"
#include "dlock/semaphore.hpp"
#include "dlock/sequencer.hpp"
#include "dlock/sequencer_check.hpp"
#include "dlock/synchronized.hpp"
#include "dlock/version.hpp"
