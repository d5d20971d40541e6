// SPDX-License-Identifier: Apache-2.0
//
// Curator as a client of the comparison suite; compare/README.md has the protocol. Threads share
// one session, as it is used.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

public class Peer {
  static String text(String job, String name) {
    Matcher found = Pattern.compile("\"" + name + "\":\"((?:[^\"\\\\]|\\\\.)*)\"").matcher(job);
    return found.find() ? found.group(1).replace("\\/", "/") : "";
  }
  static long number(String job, String name, long otherwise) {
    Matcher found = Pattern.compile("\"" + name + "\":(-?\\d+)").matcher(job);
    return found.find() ? Long.parseLong(found.group(1)) : otherwise;
  }
  static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
  interface Body { void run(int index) throws Exception; }
  static void onThreads(int count, Body body) throws Exception {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < count; ++i) {
      final int index = i;
      Thread thread = new Thread(() -> {
        try { body.run(index); } catch (Exception error) { throw new RuntimeException(error); }
      });
      thread.start();
      threads.add(thread);
    }
    for (Thread thread : threads) thread.join();
  }
  static String summary(List<Long> values) {
    Collections.sort(values);
    TreeMap<Long, Long> buckets = new TreeMap<>();
    double sum = 0;
    for (long value : values) {
      long digit = (long) Math.max(1, Math.pow(10, Long.toString(value).length() - 3));
      buckets.merge(value / digit * digit, 1L, Long::sum);
      sum += value;
    }
    StringBuilder list = new StringBuilder();
    buckets.forEach((k, v) -> list.append(list.length() == 0 ? "" : ",").append("[" + k + "," + v + "]"));
    StringBuilder out = new StringBuilder("{\"count\":" + values.size());
    out.append(",\"mean_us\":" + sum / Math.max(1, values.size()) / 1000);
    double[] percents = {50, 90, 99, 99.9, 100};
    String[] names = {"p50_us", "p90_us", "p99_us", "p999_us", "max_us"};
    for (int i = 0; i < percents.length; ++i) {
      int index = Math.max(0, (int) Math.ceil(values.size() * percents[i] / 100) - 1);
      out.append(",\"" + names[i] + "\":" + (values.isEmpty() ? 0 : values.get(index) / 1000.0));
    }
    return out.append(",\"buckets\":[" + list + "]}").toString();
  }
  static double cpu() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime() / 1e9;
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    String job = in.readLine();
    try {
      run(in, job);
      System.exit(0);
    } catch (Exception error) {
      say("{\"event\":\"failed\",\"why\":\"" + error.toString().replaceAll("[\"\\\\\n]", " ") + "\"}");
      System.exit(1);
    }
  }

  // What compare/drivers/guard.cpp does. Curator's manual: while the state is SUSPENDED or LOST
  // nobody may believe that he holds a lock.
  static class Guard {
    final BufferedReader in;
    final InterProcessMutex lock;
    final OutputStream resource;
    long grant;
    boolean told = true;
    volatile boolean lost = false;
    // System.nanoTime() does not count suspended time, the suite's clock does.
    final long ahead;

    Guard(BufferedReader in, String job, CuratorFramework client) throws Exception {
      this.in = in;
      lock = new InterProcessMutex(client, "/curator-peer/" + text(job, "lock").replace('/', '_'));
      grant = number(job, "first_grant", 1) - 1;
      // Java has no datagrams to a path.
      resource = new ProcessBuilder("python3", "-c",
          "import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\n"
          + "s.connect(sys.argv[1])\nfor l in sys.stdin: s.send(l.strip().encode())",
          text(job, "resource")).start().getOutputStream();
      String uptime = new String(Files.readAllBytes(Paths.get("/proc/uptime"))).split(" ")[0];
      long difference = (long) (Double.parseDouble(uptime) * 1e9) - System.nanoTime();
      ahead = Math.abs(difference) < 50_000_000 ? 0 : difference;
      client.getConnectionStateListenable().addListener((c, state) -> {
        if (state != ConnectionState.SUSPENDED && state != ConnectionState.LOST) return;
        lost = true;
        tellLoss(state.toString());
      });
    }
    void event(String what, String more) {
      say("{\"event\":\"" + what + "\",\"at\":" + (System.nanoTime() + ahead) + ",\"grant\":" + grant + more + "}");
    }
    synchronized void tellLoss(String why) {
      if (told) return;
      told = true;
      event("told_lost", ",\"reason\":\"" + why + "\"");
    }
    void write() throws Exception {
      resource.write((grant + " 0\n").getBytes());
      resource.flush();
    }
    void giveBack(String what) {
      synchronized (this) { told = true; }
      String error = "";
      try { lock.release(); } catch (Exception failed) { error = failed.getClass().getSimpleName(); }
      event(what, ",\"error\":\"" + error + "\"");
    }
    void hold() throws Exception {
      event("wanted", "");
      lock.acquire();
      synchronized (this) {
        ++grant;
        told = false;
        lost = false;
        event("granted", "");
      }
      for (write(); !lost; write()) {
        for (int i = 0; i < 20 && !in.ready(); ++i) Thread.sleep(1);
        if (in.ready() && in.readLine().equals("release")) {
          event("releasing", "");
          giveBack("released");
          return;
        }
      }
    }
    void run() throws Exception {
      say("{\"event\":\"ready\"}");
      for (String command = in.readLine(); command != null; command = in.readLine()) {
        if (command.equals("acquire")) hold();
        if (command.equals("release")) giveBack("late_release");
      }
    }
  }

  // Each request counts from when it was due, as in compare/drivers/programs.cpp.
  static String open(InterProcessLock lock, long rate, long duration) throws Exception {
    List<Long> times = new ArrayList<>();
    long start = System.nanoTime();
    for (long i = 0; i < rate * (duration / 1_000_000) / 1000; ++i) {
      long due = start + 1_000_000_000L * i / rate;
      for (long early; (early = due - System.nanoTime()) > 0;) LockSupport.parkNanos(early);
      lock.acquire();
      times.add(System.nanoTime() - due);
      lock.release();
    }
    return "\"rate\":" + rate + ",\"acquire\":" + summary(times);
  }

  static String contend(List<InterProcessLock> locks, long duration) throws Exception {
    List<long[]> grants = Collections.synchronizedList(new ArrayList<>());
    long end = System.nanoTime() + duration;
    onThreads(locks.size(), (i) -> {
      while (System.nanoTime() < end) {
        long asked = System.nanoTime();
        locks.get(i).acquire();
        long got = System.nanoTime();
        grants.add(new long[] {i, asked, got, System.nanoTime()});
        locks.get(i).release();
      }
    });
    return "\"grants\":[" + rows(grants) + "]";
  }

  interface Work { void run() throws Exception; }
  /// One client: runs what it does while it holds a permit, or the lock as a reader or a writer.
  interface Sharer { void with(boolean reads, Work work) throws Exception; }

  static Sharer sharer(CuratorFramework client, String name, int permits) {
    if (permits > 0) {
      InterProcessSemaphoreV2 semaphore =
          new InterProcessSemaphoreV2(client, "/curator-peer-permits/" + name, permits);
      return (reads, work) -> {
        Lease lease = semaphore.acquire();
        try { work.run(); } finally { semaphore.returnLease(lease); }
      };
    }
    InterProcessReadWriteLock both =
        new InterProcessReadWriteLock(client, "/curator-peer-shared/" + name);
    return (reads, work) -> {
      InterProcessMutex lock = reads ? both.readLock() : both.writeLock();
      lock.acquire();
      try { work.run(); } finally { lock.release(); }
    };
  }

  static String share(List<Sharer> sharers, int readers, long hold, long duration) throws Exception {
    List<long[]> grants = Collections.synchronizedList(new ArrayList<>());
    long end = System.nanoTime() + duration;
    onThreads(sharers.size(), (i) -> {
      while (System.nanoTime() < end) {
        boolean reads = ThreadLocalRandom.current().nextInt(100) < readers;
        long asked = System.nanoTime();
        sharers.get(i).with(reads, () -> {
          long got = System.nanoTime();
          for (long left = hold; left > 0; left = got + hold - System.nanoTime()) LockSupport.parkNanos(left);
          grants.add(new long[] {i, asked, got, System.nanoTime(), reads ? 1 : 0});
        });
      }
    });
    return "\"grants\":[" + rows(grants) + "]";
  }

  static String rows(List<long[]> grants) {
    StringBuilder rows = new StringBuilder();
    for (long[] grant : grants) {
      StringBuilder row = new StringBuilder();
      for (long field : grant) row.append(row.length() == 0 ? "" : ",").append(field);
      rows.append(rows.length() == 0 ? "" : ",").append("[" + row + "]");
    }
    return rows.toString();
  }

  static void runShare(BufferedReader in, String job, CuratorFramework client, long duration) throws Exception {
    List<Sharer> sharers = new ArrayList<>();
    for (long i = 0; i < number(job, "clients", 1); ++i) {
      sharers.add(sharer(client, text(job, "lock").replace('/', '_'), (int) number(job, "permits", 0)));
    }
    say("{\"event\":\"ready\"}");
    for (String line = in.readLine(); "go".equals(line); line = in.readLine()) {
      String result = share(sharers, (int) number(job, "readers_percent", 0),
          number(job, "hold_us", 1000) * 1000, duration);
      say("{\"event\":\"result\"," + result + "}");
    }
  }

  static String pairs(List<InterProcessLock> locks, long rounds, long duration) throws Exception {
    List<Long> acquires = Collections.synchronizedList(new ArrayList<>());
    List<Long> pairs = Collections.synchronizedList(new ArrayList<>());
    double cpu = cpu();
    long start = System.nanoTime();
    onThreads(locks.size(), (i) -> {
      for (long done = 0; rounds > 0 ? done < rounds : System.nanoTime() < start + duration; ++done) {
        long begin = System.nanoTime();
        locks.get(i).acquire();
        long held = System.nanoTime();
        locks.get(i).release();
        acquires.add(held - begin);
        pairs.add(System.nanoTime() - begin);
      }
    });
    double seconds = (System.nanoTime() - start) / 1e9;
    return "\"pairs\":" + pairs.size() + ",\"seconds\":" + seconds + ",\"cpu_seconds\":" + (cpu() - cpu)
        + ",\"acquire\":" + summary(acquires) + ",\"pair\":" + summary(pairs);
  }

  static void run(BufferedReader in, String job) throws Exception {
    String hosts = text(job, "url").replaceFirst("^[^/]*//", "").replaceFirst("[/?].*$", "");
    boolean guard = text(job, "program").equals("guard");
    int session = guard ? (int) number(job, "lease_ms", 60000) : 60000;
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(hosts, session, 15000, new ExponentialBackoffRetry(100, 3));
    client.start();
    client.blockUntilConnected();
    if (guard) {
      new Guard(in, job, client).run();
      return;
    }
    if (text(job, "program").equals("share")) {
      runShare(in, job, client, number(job, "duration_ms", 1000) * 1_000_000);
      return;
    }
    boolean contended = text(job, "program").equals("contend");
    int count = (int) number(job, "clients", 1);
    long rounds = number(job, "count", 0);
    long duration = number(job, "duration_ms", 1000) * 1_000_000;
    List<InterProcessLock> locks = new ArrayList<>();
    for (int i = 0; i < count; ++i) {
      String name = text(job, "lock").replace('/', '_') + (contended ? "" : "_" + i);
      locks.add(new InterProcessMutex(client, "/curator-peer/" + name));
    }
    // A Java program is slow until it is compiled; that is not what is measured.
    if (!contended) {
      for (InterProcessLock lock : locks) {
        for (int i = 0; i < Math.max(5, 300 / count); ++i) { lock.acquire(); lock.release(); }
      }
    }
    boolean open = text(job, "program").equals("open");
    say("{\"event\":\"ready\"}");
    // Each `go` of the suite asks for a measurement.
    for (String line = in.readLine(); "go".equals(line); line = in.readLine()) {
      String result = contended ? contend(locks, duration)
          : open ? open(locks.get(0), number(job, "rate", 100), duration)
                 : pairs(locks, rounds, duration);
      say("{\"event\":\"result\"," + result + "}");
    }
  }
}
