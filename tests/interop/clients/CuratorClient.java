// SPDX-License-Identifier: Apache-2.0
//
// Curator's locks: HOST:PORT SESSION_MS ROOT KIND. KIND: mutex, read or write (of a read/write lock),
// semaphore (of one permit), or permits3: one of three of a semaphore. The protocol is in tests/interop/support/foreign_client.hpp. Run from its source.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryForever;

public class CuratorClient {
  static CuratorFramework client;
  static String root;
  static String kind;
  static InterProcessLock lock;

  static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
  static InterProcessLock lockOf(String name) {
    String path = root + name;
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
