package io.cistern.locks;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.ReentrantLock;

/// Records in which order threads take locks, by the names of the locks. Two orders of the same locks may deadlock,
/// whether they did or not.
///
/// [LockAgent] calls this. Locks that Java can tell about are forgotten when the thread does not hold them any more;
/// [#left] ends the others.
///
/// **Threads.** Any.
public final class LockOrder {
    private static final ThreadLocal<Deque<Held>> HELD = ThreadLocal.withInitial(ArrayDeque::new);

    /// For each lock, those that were taken while it was held, and where first.
    private static final Map<String, Map<String, String>> AFTER = new ConcurrentHashMap<>();

    private static final Queue<String> WRONG = new ConcurrentLinkedQueue<>();
    private static final int FRAMES = 12;

    private record Held(Object lock, String name) {
        boolean isStill() {
            return switch (lock) {
                case ReentrantLock one -> one.isHeldByCurrentThread();
                case Object one when isShort(one) -> true;
                case Object one -> Thread.holdsLock(one);
            };
        }

        private static boolean isShort(Object lock) {
            return LockAgent.EXPLICIT.contains(lock.getClass().getName().replace('.', '/'))
                    || LockAgent.EXPLICIT.contains(
                            lock.getClass().getSuperclass().getName().replace('.', '/'));
        }
    }

    private LockOrder() {}

    /// Returns what was wrong.
    static List<String> wrong() {
        return List.copyOf(WRONG);
    }

    /// Returns the number of pairs of locks of which one was taken under the other.
    static int pairs() {
        return AFTER.values().stream().mapToInt(Map::size).sum();
    }

    static void broken(String className, Throwable failure) {
        WRONG.add("can't be instrumented: " + className + ": " + failure);
    }

    /// Called before a thread waits for a lock, or right after it got it.
    ///
    /// @param place names the lock unless its class does
    public static void entering(Object lock, String place) {
        Deque<Held> held = HELD.get();
        held.removeIf(each -> !each.isStill());
        String name = name(lock, place);
        for (Held each : held) {
            if (each.lock == lock) {
                return;
            }
        }
        for (Held each : held) {
            taken(each.name, name);
        }
        held.push(new Held(lock, name));
    }

    /// Called before a thread takes a lock if it is free: it never waits for it, but may hold it then.
    public static void trying(Object lock, String place) {
        HELD.get().push(new Held(lock, name(lock, place)));
    }

    /// Called after a thread has tried to take a lock.
    public static void tried(boolean entered, Object lock) {
        if (entered) {
            left(lock);
            trying(lock, "");
        }
    }

    /// Called when a thread leaves a lock that Java can't tell about.
    public static void left(Object lock) {
        HELD.get().removeIf(each -> each.lock == lock);
    }

    private static String name(Object lock, String place) {
        String type = lock instanceof Class<?> each
                ? "class " + each.getName()
                : lock.getClass().getName();
        boolean isOnlyLock = type.endsWith(".ShortLock") || type.endsWith(".HeldLock");
        return type.startsWith("io.cistern.") && !isOnlyLock ? type : place;
    }

    /// Locks of one name are told apart by nothing, so their order is not looked at.
    private static void taken(String first, String second) {
        if (first.equals(second) || AFTER.getOrDefault(first, Map.of()).containsKey(second)) {
            return;
        }
        synchronized (LockOrder.class) {
            AFTER.computeIfAbsent(first, _ -> new ConcurrentHashMap<>()).put(second, stack());
            List<String> back = way(second, first);
            if (!back.isEmpty()) {
                back.addFirst(first);
                WRONG.add(text(back));
            }
        }
    }

    private static String stack() {
        return Arrays.stream(Thread.currentThread().getStackTrace())
                .skip(4)
                .limit(FRAMES)
                .map(StackTraceElement::toString)
                .reduce("", (all, each) -> all + "\n        " + each);
    }

    private static String text(List<String> circle) {
        StringBuilder text = new StringBuilder("locks are taken in two orders: " + String.join(" -> ", circle));
        for (int i = 0; i + 1 < circle.size(); i++) {
            String first = circle.get(i);
            text.append("\n    ").append(circle.get(i + 1)).append(" under ").append(first);
            text.append(AFTER.get(first).get(circle.get(i + 1)));
        }
        return text.toString();
    }

    /// Returns the locks on a way from one to another, both included; empty if there is none.
    private static List<String> way(String from, String to) {
        Map<String, String> before = new HashMap<>();
        Set<String> seen = new HashSet<>(Set.of(from));
        Deque<String> open = new ArrayDeque<>(seen);
        while (!open.isEmpty() && !seen.contains(to)) {
            String each = open.poll();
            for (String next : AFTER.getOrDefault(each, Map.of()).keySet()) {
                if (seen.add(next)) {
                    before.put(next, each);
                    open.add(next);
                }
            }
        }
        List<String> way = new ArrayList<>();
        for (String at = to; seen.contains(to) && at != null; at = before.get(at)) {
            way.addFirst(at);
        }
        return way;
    }
}
