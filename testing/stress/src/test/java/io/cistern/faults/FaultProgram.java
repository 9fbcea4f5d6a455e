package io.cistern.faults;

import io.cistern.faults.FaultSites.Site;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// Runs each workload once for each site that it visits, which fails then: the program in a JVM of its own.
///
/// Arguments: the [FaultKind]; `quick` to try each site in one workload of each allocator, `whole` to try it in every
/// one, on both kinds of threads, at its first, second and last visit, and `pairs` to try it also together with each
/// site that is visited after it, in the same call; the specs of allocators. But for `whole`, a spec after
/// a `+` is tried with the sites alone that none before it has visited, in the workloads
/// that go through the allocator. Prints a line for each thing that is wrong,
/// and for each site that no workload visits though it [must be][SitesLeftOut]. The property
/// `faults.workloads` names the workloads to run alone, separated by commas.
public final class FaultProgram {
    private static final long PATIENCE_MILLIS = 40_000;

    /// So that whoever reads the lines knows that it goes on.
    private static final int RUNS_A_LINE = 100;

    /// Virtual threads count in turn in one of so many counters at most: if an error keeps one taken, as many errors
    /// keep them all.
    private static final int SHARED = 4 * Runtime.getRuntime().availableProcessors() + 1;

    /// Those that go through the allocator: where another allocator has sites of its own. A quick run does only them
    /// with a spec after a `+`.
    private static final Set<Workload> OF_ALLOCATORS = EnumSet.of(
            Workload.TRAFFIC,
            Workload.BATCHES,
            Workload.FULL,
            Workload.COMPACTS,
            Workload.GRAPHS,
            Workload.OPEN,
            Workload.LIFE,
            Workload.PEERS,
            Workload.LAUNCHES,
            Workload.WAITS,
            Workload.QUIET,
            Workload.GROWING,
            Workload.REMEMBERED,
            Workload.FULL_CAPTURE,
            Workload.REFUSALS,
            Workload.REFUSED_FREES,
            Workload.REFUSED_SLEEP);

    private static final Set<String> WORKLOADS = Arrays.stream(
                    System.getProperty("faults.workloads", "").split(","))
            .filter(name -> !name.isEmpty())
            .collect(Collectors.toUnmodifiableSet());

    private final FaultKind kind;
    private final boolean whole;
    private final boolean pairs;
    private final Set<Integer> visited = new HashSet<>();
    private int runs;

    /// Whether the driver's refusals alone lose memory in the workload that runs.
    private boolean driverKeepsMemory;

    private FaultProgram(FaultKind kind, String extent) {
        this.kind = kind;
        this.whole = extent.equals("whole");
        this.pairs = extent.equals("pairs");
    }

    /// Runs all.
    public static void main(String[] args) throws Exception {
        FaultAgent.loadAll();
        FaultProgram program = new FaultProgram(FaultKind.valueOf(args[0]), args[1]);
        for (String spec : Arrays.asList(args).subList(2, args.length)) {
            program.run(spec.substring(spec.startsWith("+") ? 1 : 0), spec.startsWith("+"));
        }
        program.report();
        System.exit(0); // also beside threads that hang
    }

    private void run(String spec, boolean others) throws Exception {
        Set<Integer> tried = others ? visited : new HashSet<>();
        for (Workload workload : others && !whole ? OF_ALLOCATORS : EnumSet.allOf(Workload.class)) {
            if (!WORKLOADS.isEmpty() && !WORKLOADS.contains(workload.name())) {
                continue;
            }
            if (!whole && workload.fills() && spec.contains("paranoid")) {
                continue; // which writes and reads every byte
            }
            for (boolean virtual : threads(workload)) {
                driverKeepsMemory = false;
                System.out.println("WORKLOAD " + spec + " " + workload + (virtual ? " virtual" : ""));
                run(spec, workload, virtual, -1, 0, 0); // loads classes
                int[] visits = run(spec, workload, virtual, -1, 0, 0);
                List<Site> sites = FaultSites.all();
                for (int site = 0; site < sites.size(); site++) {
                    if (visits[site] > 0) {
                        if (tried.add(site) || whole) {
                            fail(spec, workload, virtual, site, visits[site]);
                        }
                        visited.add(site);
                    }
                }
            }
        }
    }

    /// A quick run has each site on a virtual thread first: they go ways of their own, and most of the others' too.
    private boolean[] threads(Workload workload) {
        return workload.onVirtualThreads ? new boolean[] {true, false} : new boolean[] {false};
    }

    private void fail(String spec, Workload workload, boolean virtual, int site, int visits) throws Exception {
        IntStream chosen = whole ? IntStream.of(1, 2, visits).distinct() : IntStream.of((visits + 1) / 2);
        for (int visit : chosen.filter(visit -> visit <= visits).toArray()) {
            run(spec, workload, virtual, site, visit, 0);
            if (pairs) {
                failTwice(spec, workload, virtual, site, visit, FaultSites.following());
            }
        }
    }

    private void failTwice(
            String spec, Workload workload, boolean virtual, int site, int visit, List<Integer> following)
            throws Exception {
        Set<Integer> tried = new HashSet<>();
        for (int next = 1; next <= following.size(); next++) {
            if (tried.add(following.get(next - 1))) {
                run(spec, workload, virtual, site, visit, next);
            }
        }
    }

    /// @return the visits of each site
    private int[] run(String spec, Workload workload, boolean virtual, int site, int visit, int next) throws Exception {
        if (++runs % RUNS_A_LINE == 0) {
            System.out.println("RUNS " + runs);
        }
        GpuProgram program = workload.program(spec);
        int[][] visits = new int[1][];
        List<String> wrong = new ArrayList<>();
        Thread.Builder builder =
                virtual ? Thread.ofVirtual() : Thread.ofPlatform().daemon();
        int times = virtual && isInRouting(site) && !workload.isRefused() ? SHARED : 1; // else the driver keeps it all
        Thread worker = builder.start(() -> {
            workload.prepare(program);
            boolean untold = false;
            for (int time = 0; time < times; time++) {
                if (time > 0) {
                    program.beginAgain();
                }
                try {
                    FaultSites.watch(kind, site, visit, next);
                    workload.run(program);
                    untold |= EventWatch.isInTelling(FaultSites.stop());
                } catch (Throwable failure) {
                    Error thrown = FaultSites.stop();
                    if (!isCausedByThrown(failure)) {
                        wrong.add("the error is hidden by " + GpuProgram.brief(failure));
                    } else if (EventWatch.isInTelling(thrown)) {
                        wrong.add("the loss of an event reaches the program");
                    }
                }
            }
            visits[0] = FaultSites.visits();
            if (program.watch != null) {
                wrong.addAll(program.watch.faults(untold ? 1 : 0));
            }
        });
        if (ended(worker, "the thread hangs", wrong)) {
            Thread checker =
                    Thread.ofPlatform().daemon().start(() -> wrong.addAll(program.end(kind == FaultKind.STACK)));
            ended(checker, "what comes after hangs", wrong);
        }
        if (workload.mayLeak()) {
            wrong.removeIf(each -> each.equals(GpuProgram.LEAKED) || each.startsWith(GpuProgram.OBJECTS));
        }
        if (workload.isRefused()) {
            boolean loses = wrong.removeIf(GpuProgram.LOST::equals);
            if (site < 0) {
                driverKeepsMemory |= loses;
            } else if (loses && !driverKeepsMemory) {
                wrong.add(GpuProgram.LOST);
            }
        }
        String name = site < 0 ? "nothing" : FaultSites.all().get(site).toString();
        if (next > 0 && FaultSites.following().size() >= next) {
            name += " and " + FaultSites.all().get(FaultSites.following().get(next - 1));
        }
        for (String each : wrong) {
            System.out.println("WRONG " + name + " | " + spec + " " + workload + (virtual ? " virtual " : " ") + visit
                    + " | " + each);
        }
        program.gpu.close();
        return visits[0] != null ? visits[0] : FaultSites.visits();
    }

    private static boolean isInRouting(int site) {
        return site >= 0 && FaultSites.all().get(site).method().contains(".routing.");
    }

    private static boolean isCausedByThrown(Throwable failure) {
        for (Throwable each = failure; each != null; each = each.getCause()) {
            if (FaultSites.isThrown(each)) {
                return true;
            }
        }
        return false;
    }

    private static boolean ended(Thread thread, String otherwise, List<String> wrong) throws InterruptedException {
        thread.join(PATIENCE_MILLIS);
        if (thread.isAlive()) {
            wrong.add(otherwise
                    + Arrays.stream(thread.getStackTrace())
                            .filter(frame -> frame.getClassName().startsWith("io.cistern"))
                            .limit(4)
                            .map(frame -> " " + frame.getFileName() + ":" + frame.getLineNumber())
                            .toList());
        }
        return !thread.isAlive();
    }

    private void report() {
        FaultSites.broken().forEach((name, failure) -> System.out.println("BROKEN " + name + " " + failure));
        List<Site> sites = FaultSites.all();
        int reached = 0;
        int all = 0;
        for (int site = 0; site < sites.size(); site++) {
            if (!SitesLeftOut.contains(sites.get(site))) {
                all++;
                if (visited.contains(site)) {
                    reached++;
                } else {
                    System.out.println("UNREACHED " + sites.get(site));
                }
            }
        }
        System.out.println("REACHED " + reached + " of " + all + " sites in " + runs + " runs, " + visited.size()
                + " with those that need not be");
    }
}
