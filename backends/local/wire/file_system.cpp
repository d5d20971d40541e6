// SPDX-License-Identifier: Apache-2.0
#include "backends/local/wire/file_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace dlock::local {
namespace {

using Verdict = FileSystem::Verdict;

struct Row {
  std::uint64_t type;
  const char* name;
  Verdict verdict;
  bool forgets = false;
};

// The numbers are the kernel's (statfs(2), linux/magic.h and the file systems' own headers).
constexpr std::array kRows{
    Row{0xEF53, "ext2/ext3/ext4", Verdict::good},  Row{0x58465342, "xfs", Verdict::good},
    Row{0x9123683E, "btrfs", Verdict::good},       Row{0x01021994, "tmpfs", Verdict::good, true},
    Row{0x858458F6, "ramfs", Verdict::good, true}, Row{0x2FC12FC1, "zfs", Verdict::good},
    Row{0xF2F52010, "f2fs", Verdict::good},        Row{0xCA451A4E, "bcachefs", Verdict::good},
    Row{0x794C7630, "overlayfs", Verdict::good},   Row{0x3153464A, "jfs", Verdict::good},
    Row{0x52654973, "reiserfs", Verdict::good},    Row{0x3434, "nilfs2", Verdict::good},
    Row{0x6969, "nfs", Verdict::refused},          Row{0x517B, "smb", Verdict::refused},
    Row{0xFF534D42, "cifs", Verdict::refused},     Row{0xFE534D42, "smb2", Verdict::refused},
    Row{0x65735546, "fuse", Verdict::refused},     Row{0x01021997, "9p", Verdict::refused},
    Row{0x00C36400, "ceph", Verdict::refused},     Row{0x5346414F, "afs", Verdict::refused},
    Row{0x6B414653, "afs", Verdict::refused},      Row{0x73757245, "coda", Verdict::refused},
    Row{0x564C, "ncp", Verdict::refused},          Row{0x01161970, "gfs2", Verdict::refused},
    Row{0x7461636F, "ocfs2", Verdict::refused},    Row{0x0BD00BD0, "lustre", Verdict::refused},
    Row{0x47504653, "gpfs", Verdict::refused},     Row{0x20030528, "orangefs", Verdict::refused},
    Row{0x19830326, "beegfs", Verdict::refused},   Row{0x786F4256, "vboxsf", Verdict::refused},
    Row{0xBACBACBC, "vmhgfs", Verdict::refused},   Row{0x7C7C6673, "prl_fs", Verdict::refused},
};

}  // namespace

FileSystem classify_file_system(std::uint64_t type) {
  const auto row =
      std::find_if(kRows.begin(), kRows.end(), [type](const Row& r) { return r.type == type; });
  if (row == kRows.end()) return {Verdict::unknown, fmt::format("type {:#x}", type), false};
  return {row->verdict, row->name, row->forgets};
}

}  // namespace dlock::local
