// SPDX-License-Identifier: Apache-2.0
//
// node-redlock as a client of the comparison suite; compare/README.md has the protocol. Clients are
// tasks of one process on one connection, as it is used.
'use strict';
const readline = require('readline');
const fs = require('fs');

const say = (event) => fs.writeSync(1, JSON.stringify(event) + '\n');
// CLOCK_MONOTONIC: turns are compared with other processes of the same program only.
const hr = () => process.hrtime.bigint();

function summary(values) {
  const sorted = values.slice().sort((a, b) => a - b);
  const at = (p) => sorted.length === 0 ? 0 : sorted[Math.max(0, Math.ceil(sorted.length * p / 100) - 1)] / 1000;
  const buckets = new Map();
  for (const value of sorted) {
    const digit = Math.max(1, 10 ** (String(value).length - 3));
    const key = Math.floor(value / digit) * digit;
    buckets.set(key, (buckets.get(key) || 0) + 1);
  }
  return {count: sorted.length, mean_us: sorted.reduce((a, b) => a + b, 0) / Math.max(1, sorted.length) / 1000,
          p50_us: at(50), p90_us: at(90), p99_us: at(99), p999_us: at(99.9), max_us: at(100),
          buckets: [...buckets].sort((a, b) => a[0] - b[0])};
}

// process.hrtime does not count suspended time, the suite's clock does.
function clockAhead() {
  const difference = Math.round(Number(fs.readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1e9) - Number(hr());
  return Math.abs(difference) < 50e6 ? 0 : difference;
}

// What compare/drivers/guard.cpp does, with Redlock's lock, extended at a third of its time.
async function guard(job, redlock, lines) {
  const ahead = clockAhead();
  const now = () => Number(hr()) + ahead;
  // Node has no datagrams to a path.
  const resource = require('child_process').spawn('python3', ['-c',
    'import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\n' +
    's.connect(sys.argv[1])\nfor l in sys.stdin: s.send(l.strip().encode())', job.resource],
    {stdio: ['pipe', 'ignore', 'inherit']}).stdin;
  let grant = job.first_grant - 1, lock = null, told = true, until = 0, lost = '';
  const event = (what, more) => say({event: what, at: now(), grant, ...more});
  const write = () => resource.write(`${grant} 0\n`);
  const giveBack = async (what) => {
    told = true;
    let error = '';
    try { await (lock.release ? lock.release() : lock.unlock()); } catch (failed) { error = failed.name; }
    event(what, {error});
  };
  const renew = async (mine) => {
    while (lock === mine && !told) {
      await new Promise((done) => setTimeout(done, job.lease_ms / 3));
      if (lock !== mine || told) return;
      const sent = now();
      try {
        lock = mine = await mine.extend(job.lease_ms);
        until = sent + job.lease_ms * 1e6;
        if (!told) event('extended', {until});
      } catch (failed) {
        if (now() < until && !/resource/.test(String(failed))) continue;
        lost = failed.name;
        if (!told) { told = true; event('told_lost', {reason: lost}); }
        return;
      }
    }
  };
  let sent = 0, beat = null;
  say({event: 'ready'});
  for await (const command of lines) {
    if (command === 'acquire') {
      event('wanted');
      while (true) {
        sent = now();
        try { lock = await redlock.acquire(['peer:' + job.lock], job.lease_ms); break; } catch (failed) {
          await new Promise((done) => setTimeout(done, 100));
        }
      }
      ++grant;
      told = false;
      until = sent + job.lease_ms * 1e6;
      event('granted', {until});
      write();
      beat = setInterval(() => { if (told) clearInterval(beat); else write(); }, 20);
      renew(lock);
    } else if (command === 'release') {
      clearInterval(beat);
      if (!told) event('releasing');
      await giveBack(told ? 'late_release' : 'released');
    }
  }
}

// Each request counts from when it was due, as in compare/drivers/programs.cpp.
async function openLoad(job, [name], acquire, release) {
  const times = [];
  const start = hr();
  for (let i = 0; i < Math.floor(job.rate * job.duration_ms / 1000); ++i) {
    const due = start + 1000000000n * BigInt(i) / BigInt(job.rate);
    const early = Number(due - hr()) / 1e6;
    if (early > 2) await new Promise((done) => setTimeout(done, early - 2));
    while (hr() < due) await new Promise((done) => setImmediate(done));
    const lock = await acquire(name);
    times.push(Number(hr() - due));
    await release(lock);
  }
  return {rate: job.rate, acquire: summary(times)};
}

async function contend(job, names, acquire, release) {
  const grants = [];
  const end = hr() + BigInt(job.duration_ms) * 1000000n;
  await Promise.all(names.map(async (name, index) => {
    while (hr() < end) {
      const asked = Number(hr());
      const lock = await acquire(name);
      const got = Number(hr());
      grants.push([index, asked, got, got]);
      await release(lock);
    }
  }));
  return {grants};
}

async function pairs(job, names, acquire, release) {
  const acquires = [], both = [];
  const cpu = process.cpuUsage();
  const start = hr();
  const end = start + BigInt(job.duration_ms) * 1000000n;
  await Promise.all(names.map(async (name) => {
    for (let done = 0; job.count ? done < job.count : hr() < end; ++done) {
      const begin = hr();
      const lock = await acquire(name);
      const held = hr();
      await release(lock);
      acquires.push(Number(held - begin));
      both.push(Number(hr() - begin));
    }
  }));
  const used = process.cpuUsage(cpu);
  return {pairs: both.length, seconds: Number(hr() - start) / 1e9,
          cpu_seconds: (used.user + used.system) / 1e6, acquire: summary(acquires), pair: summary(both)};
}

async function main() {
  const lines = readline.createInterface({input: process.stdin})[Symbol.asyncIterator]();
  const job = JSON.parse((await lines.next()).value);
  const Redis = require('ioredis');
  const Redlock = require('redlock');
  const url = new URL(job.url);
  const client = new Redis({host: url.hostname, port: Number(url.port)});
  const redlock = new (Redlock.default || Redlock)([client], {retryCount: -1});
  if (job.program === 'guard') return guard(job, redlock, lines);
  const acquire = (name) => redlock.acquire(['peer:' + name], 30000);
  const release = (lock) => (lock.release ? lock.release() : lock.unlock());
  const contended = job.program === 'contend';
  const names = Array.from({length: job.clients || 1}, (_, i) => contended ? job.lock : `${job.lock}/${i}`);

  if (!contended) for (const name of names) await release(await acquire(name));
  const run = {open: openLoad, contend, pairs}[job.program];
  say({event: 'ready'});
  // Each `go` of the suite asks for a measurement.
  for await (const line of lines) {
    if (line !== 'go') break;
    say({event: 'result', ...await run(job, names, acquire, release)});
  }
  process.exit(0);
}

main().catch((error) => { say({event: 'failed', why: String(error)}); process.exit(1); });
