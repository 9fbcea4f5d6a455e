package io.cistern.faults;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The places where an error may be thrown, and which of them throws next.
///
/// **Threads.** One thread at a time is watched; what others do at a site is neither counted nor failed.
public final class FaultSites {
    /// One of them.
    ///
    /// @param method with its class
    /// @param what the instruction does
    /// @param ofMessage whether it makes an exception or its text
    record Site(String method, int line, String what, boolean ofMessage) {
        @Override
        public String toString() {
            return method + ":" + line + " " + what;
        }
    }

    private static final List<Site> SITES = new ArrayList<>();
    private static final Map<String, Throwable> BROKEN = new HashMap<>();
    private static int[] visits = new int[1 << 14];

    private static @Nullable FaultKind kind;
    private static volatile @Nullable Thread watched;
    private static int chosen;
    private static int chosenVisit;
    private static @Nullable Error thrown;

    /// The sites that were visited since the error was thrown, in their order, and which of them throws too: the
    /// number counted from 1, or 0 for none.
    private static final List<Integer> FOLLOWING = new ArrayList<>();

    private static int second;
    private static @Nullable Error thrownToo;

    private FaultSites() {}

    static synchronized int add(String method, int line, String what) {
        boolean ofMessage = what.endsWith("Exception") || what.endsWith("Error") || what.contains("StringBuilder");
        SITES.add(new Site(method, line, what, ofMessage));
        return SITES.size() - 1;
    }

    static synchronized void brokenBy(String className, Throwable failure) {
        BROKEN.put(className, failure);
    }

    /// Called at each site.
    public static void at(int site) {
        if (watched != Thread.currentThread() || kind == null) {
            return;
        }
        if (thrown != null) {
            FOLLOWING.add(site);
            if (FOLLOWING.size() == second) {
                thrownToo = kind.error("and " + SITES.get(site));
                throw thrownToo;
            }
        } else if (++visits[site] == chosenVisit && site == chosen) {
            thrown = kind.error(SITES.get(site).toString());
            throw thrown;
        }
    }

    /// Watches the calling thread, and has it fail at a visit of a site.
    ///
    /// @param visit counted from 1; 0 for never
    /// @param next the number, counted from 1, of the visit after this one that fails too; 0 for none
    static void watch(FaultKind how, int site, int visit, int next) {
        second = next;
        thrownToo = null;
        FOLLOWING.clear();
        kind = how;
        visits = new int[1 << 14];
        chosen = site;
        chosenVisit = visit;
        thrown = null;
        watched = Thread.currentThread();
    }

    /// Watches no more.
    ///
    /// @return what was thrown, or null
    static @Nullable Error stop() {
        watched = null;
        return thrown;
    }

    /// Whether an error is one of those thrown.
    static boolean isThrown(Throwable error) {
        return error == thrown || error == thrownToo;
    }

    /// The sites that were visited after the one that failed.
    static List<Integer> following() {
        return List.copyOf(FOLLOWING);
    }

    /// How often each site was visited since [#watch].
    static int[] visits() {
        return visits.clone();
    }

    static synchronized List<Site> all() {
        return List.copyOf(SITES);
    }

    /// Classes that could not be changed.
    static synchronized Map<String, Throwable> broken() {
        return Map.copyOf(BROKEN);
    }
}
