# SPDX-License-Identifier: Apache-2.0
"""All that is said about single blocks. What is not here is run as it stands in the page."""

PAGES = (
    "README.md",
    "docs/cli.md",
    "docs/configuration.md",
    "docs/fencing.md",
    "docs/guarantees.md",
    "docs/compare.md",
)

# A page's servers and folders -> the test's.
REPLACED = (
    ("zk1,zk2:2182,[::1]:2183/", "{zookeeper}/"),
    ("zk1,zk2,zk3/", "{zookeeper}/"),
    ("zk1/", "{zookeeper}/"),
    ("127.0.0.1:2181", "{zookeeper}"),
    ("10.0.0.9/", "{redis}/"),
    ("https://shop/", "http://{shop}/"),
    ("/var/lib/app", "{folder}/app"),
    ("/run/secrets/zk", "{folder}/zk.password"),
)

# Files that a reader has in his folder, and their content.
FILES = {
    "report.sh": "echo reported\n",
    "make-report": "#!/bin/sh\necho made\n",
    "order.json": '{"id": 42}\n',
    "zk.password": "secret\n",
    "dlock.yaml": """\
stores:
  zk: { url: "zookeeper://zk1,zk2,zk3/app", app: billing }
""",
}

# What a page says to be in the environment.
ENVIRONMENT = {
    "ZK_PASSWORD": "secret",
    "CACHE_URL": "redis://10.0.0.9/0",
}

# Measuring takes minutes: (page, command) -> what stands behind it here.
SHORT = "--stores local --scenarios speed.uncontended"
SHORTENED = {
    ("README.md", "build/bin/dlock compare --quick"): SHORT,
    ("docs/compare.md", "dlock compare --quick"): SHORT + " --out run1",
    ("docs/compare.md", "dlock compare"): SHORT + " --quick --out run2",
    (
        "docs/compare.md",
        "dlock compare --store redis://10.0.0.9/0",
    ): "--quick --scenarios speed.uncontended",
}

# (page, command) that measures for much longer: ended by Ctrl-C when it has begun.
INTERRUPTED = dict.fromkeys(
    [
        ("docs/compare.md", "dlock compare --full"),
        (
            "docs/compare.md",
            "dlock compare --stores redis,zookeeper --scenarios speed,safety.holder_paused",
        ),
    ],
    True,
)

# (page, command or first line of the block) -> why it is not run.
NOT_RUN = {
    ("README.md", "./scripts/demo"): "builds the project; needs a clone, not an installation",
    ("README.md", "./scripts/test"): "builds the project and runs all tests, this one, too",
}

# What a page's C++ fragments take for granted, in the page's words: `outside` stands before the
# function that they are in (fragments.py), `before` and `after` around them.
GIVEN = {
    "README.md": {
        "outside": """\
struct Order {} order;
void ship(Order, std::optional<std::uint64_t> token) { expect(token); }
""",
        "before": "",
        "after": "",
    },
    "docs/guarantees.md": {
        "outside": """\
std::stop_source shutting_down;
int shipped = 0;
void ship_next(std::optional<std::uint64_t>) {
  if (++shipped == 3) shutting_down.request_stop();
}
""",
        "before": "",
        "after": """\
auto locks = dlock::LockManager::open("zookeeper://zk1,zk2,zk3/app");
ship_orders(*locks.lock("orders"), shutting_down.get_token());
expect(shipped == 3);
""",
    },
    "docs/fencing.md": {
        "outside": """\
struct Request {
  void set(std::string_view, std::string value) { header = std::move(value); }
  std::string header;
};
""",
        "before": """\
auto locks = dlock::LockManager::open("zookeeper://zk1,zk2,zk3/app");
auto held = locks.lock("orders/42")->acquire();
Request request;
const std::string& x_lock = request.header;
const std::string key(16, 'k');
dlock::error_code ec;
""",
        "after": """\
expect(!ec && request.header.starts_with("dlock1s:exclusive:"));
dlock::SequencerCheck check;
expect(status_of_write(check, held.sequencer()->to_string()) == 200);
expect(status_of_write(check, "17") == 400);
dlock::FencedRegister written("/var/lib/app/leader");
expect(written.read()->bytes == "node7");
""",
    },
}
