// SPDX-License-Identifier: Apache-2.0
//
// node-redlock: HOST:PORT LEASE_MS PREFIX MODULE. MODULE: the name it is installed by. The protocol
// is in tests/interop/support/foreign_client.hpp.
'use strict';
const fs = require('fs');
const readline = require('readline');

const say = (...words) => fs.writeSync(1, words.join(' ') + '\n');
const [endpoint, leaseText, prefix, module_] = process.argv.slice(2);
const lease = Number(leaseText);
let Redis, Redlock;
try {
  Redis = require('ioredis');
  Redlock = require(module_);
} catch (error) {
  say('missing', './scripts/build --tests gets ioredis and redlock of npm');
  process.exit(1);
}

const [host, port] = endpoint.split(':');
const client = new Redis({host, port: Number(port)});
const make = (retryCount) => new (Redlock.default || Redlock)(
  [client], {retryCount, retryDelay: 10, retryJitter: 5});
const patient = make(-1), impatient = make(0);
for (const one of [patient, impatient]) one.on('error', () => {});

// Version 4 takes a resource, version 5 a list, and both a list.
const acquire = (name, wait) => (wait ? patient : impatient).acquire([prefix + name], lease);
const release = (lock) => (lock.release ? lock.release() : lock.unlock());

async function increment(file) {
  const number = Number(fs.readFileSync(file, 'utf8'));
  await new Promise((done) => setTimeout(done, 1));
  fs.writeFileSync(file, String(number + 1));
}

let lock = null;
const commands = {
  async acquire(name, wait = true) {
    lock = await acquire(name, wait);
    return `held ${process.hrtime.bigint()}`;
  },
  async try(name) {
    try {
      return await commands.acquire(name, false);
    } catch (error) {
      if (['LockError', 'ExecutionError', 'ResourceLockedError'].includes(error.name)) return 'busy';
      throw error;
    }
  },
  async release() {
    await release(lock);
    return 'done';
  },
  async extend() {
    lock = await lock.extend(lease);
    return 'done';
  },
  async increment(file) {
    await increment(file);
    return 'done';
  },
  async count(name, times, file) {
    for (let i = 0; i < Number(times); ++i) {
      lock = await acquire(name, true);
      await increment(file);
      await release(lock);
    }
    return 'done';
  },
};

async function main() {
  await client.ping();
  say('ready');
  for await (const line of readline.createInterface({input: process.stdin})) {
    const [command, ...rest] = line.split(' ');
    if (command === 'exit') break;
    try {
      say(await commands[command](...rest));
    } catch (error) {
      say('error', error.name, String(error.message).replace(/\s+/g, ' '));
    }
  }
  process.exit(0);
}

main();
