// SPDX-License-Identifier: Apache-2.0
//
// Curator's locks: HOST:PORT SESSION_MS ROOT KIND. KIND: mutex, read or write (of a read/write lock),
// semaphore (of one permit), permits3: one of three of a semaphore, or leader (a LeaderSelector, which is held
// while it leads). The protocol is in tests/interop/support/foreign_client.hpp. Run from its source.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryForever;

public class CuratorClient {
  static CuratorFramework client;
  static String root;
  static String kind;
  static InterProcessLock lock;
  static final Semaphore asked = new Semaphore(0);

  static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
  static class Leadership implements InterProcessLock {
    final CountDownLatch elected = new CountDownLatch(1);
    final CountDownLatch resigns = new CountDownLatch(1);
    final LeaderSelector selector;
    Leadership(String path) {
      selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
        @Override public void takeLeadership(CuratorFramework unused) throws Exception {
          elected.countDown();
          resigns.await();
        }
      });
      selector.setId("curator");
      selector.start();
    }
    @Override public void acquire() throws Exception {
      elected.await();
    }
    @Override public boolean acquire(long time, TimeUnit unit) throws Exception {
      boolean leads = elected.await(Math.max(2, unit.toSeconds(time)), TimeUnit.SECONDS);
      if (!leads) selector.close();
      return leads;
    }
    @Override public void release() throws Exception {
      resigns.countDown();
      while (selector.hasLeadership()) Thread.sleep(1);
      selector.close();
    }
    @Override public boolean isAcquiredInThisProcess() {
      return selector.hasLeadership();
    }
  }
  static InterProcessLock lockOf(String name) {
    String path = root + name;
    if (kind.equals("leader")) return new Leadership(path);
    if (kind.equals("read")) return new InterProcessReadWriteLock(client, path).readLock();
    if (kind.equals("write")) return new InterProcessReadWriteLock(client, path).writeLock();
    if (kind.equals("permits3")) return new Permit(path, 3);
    if (kind.equals("semaphore")) return new InterProcessSemaphoreMutex(client, path);
    return new InterProcessMutex(client, path);
  }
  /// One permit of a semaphore.
  static class Permit implements InterProcessLock {
    final InterProcessSemaphoreV2 semaphore;
    Lease lease;

    Permit(String path, int limit) {
      semaphore = new InterProcessSemaphoreV2(client, path, limit);
    }
    public void acquire() throws Exception {
      lease = semaphore.acquire();
    }
    public boolean acquire(long time, TimeUnit unit) throws Exception {
      lease = semaphore.acquire(time, unit);
      return lease != null;
    }
    public void release() throws Exception {
      semaphore.returnLease(lease);
      lease = null;
    }
    public boolean isAcquiredInThisProcess() {
      return lease != null;
    }
  }
  static void increment(String file) throws Exception {
    Path path = Paths.get(file);
    long number = Long.parseLong(new String(Files.readAllBytes(path)));
    Thread.sleep(1);
    Files.write(path, Long.toString(number + 1).getBytes());
  }
  static InterProcessMutex revocable(String name) {
    InterProcessMutex mutex = new InterProcessMutex(client, root + name);
    mutex.makeRevocable(whose -> asked.release());
    return mutex;
  }
  static void revokeFirst(String name) throws Exception {
    InterProcessMutex mutex = new InterProcessMutex(client, root + name);
    Revoker.attemptRevoke(client, mutex.getParticipantNodes().iterator().next());
  }
  static String answer(String[] words) throws Exception {
    switch (words[0]) {
      case "try":
        lock = lockOf(words[1]);
        // A semaphore's acquire asks its lock first, for which it has to wait a little.
        return lock.acquire(lock instanceof Permit ? 500 : 0, TimeUnit.MILLISECONDS) ? "held " + System.nanoTime() : "busy";
      case "acquire":
        lock = lockOf(words[1]);
        lock.acquire();
        return "held " + System.nanoTime();
      case "revocable":
        lock = revocable(words[1]);
        lock.acquire();
        return "done";
      case "asked":
        return asked.tryAcquire(60, TimeUnit.SECONDS) ? "done" : "refused";
      case "revoke":
        revokeFirst(words[1]);
        return "done";
      case "release":
        lock.release();
        return "done";
      case "increment":
        increment(words[1]);
        return "done";
      case "count":
        lock = lockOf(words[1]);
        for (int i = 0; i < Integer.parseInt(words[2]); ++i) {
          lock.acquire();
          increment(words[3]);
          lock.release();
        }
        return "done";
      default:
        return "error NoSuchCommand " + words[0];
    }
  }
  public static void main(String[] arguments) throws Exception {
    root = arguments[2];
    kind = arguments[3];
    client = CuratorFrameworkFactory.newClient(arguments[0], Integer.parseInt(arguments[1]), 15000,
        new RetryForever(100));
    client.start();
    client.blockUntilConnected();
    say("ready");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null && !line.equals("exit"); line = in.readLine()) {
      try {
        say(answer(line.split(" ")));
      } catch (Exception error) {
        say("error " + error.getClass().getSimpleName() + " "
            + String.valueOf(error.getMessage()).replaceAll("\\s+", " "));
      }
    }
    System.exit(0);
  }
}
