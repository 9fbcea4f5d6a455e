package io.cistern.cli.refusals;

import io.cistern.cli.refusals.Step.Acquire;
import io.cistern.cli.refusals.Step.Allocate;
import io.cistern.cli.refusals.Step.BeginCapture;
import io.cistern.cli.refusals.Step.CloseGraph;
import io.cistern.cli.refusals.Step.ClosePool;
import io.cistern.cli.refusals.Step.CloseSpillable;
import io.cistern.cli.refusals.Step.EndCapture;
import io.cistern.cli.refusals.Step.EndStream;
import io.cistern.cli.refusals.Step.Free;
import io.cistern.cli.refusals.Step.Graph;
import io.cistern.cli.refusals.Step.LimitScopes;
import io.cistern.cli.refusals.Step.OpenPool;
import io.cistern.cli.refusals.Step.Route;
import io.cistern.cli.refusals.Step.Spillable;
import io.cistern.cli.refusals.Step.Sprinkle;
import io.cistern.cli.refusals.Step.Synchronize;
import io.cistern.cli.refusals.Step.Trim;
import io.cistern.cli.refusals.Step.Use;
import io.cistern.cli.refusals.Step.Work;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/// A program that wants about as much memory as a small device has.
///
/// @param spec the current allocator
/// @param capacityBytes the device's memory
/// @param limitBytes the device's limit; 0 for none
/// @param pauses whether the program says that it rests when it is asked to
/// @param inTask whether the main thread is in a task of an arbiter
/// @param steps what it does
record Traffic(String spec, long capacityBytes, long limitBytes, boolean pauses, boolean inTask, List<Step> steps) {
    static final int STREAMS = 3;

    /// Draws a program.
    static Traffic of(String spec, long seed) {
        return new Draw(spec, seed).traffic();
    }

    /// Leaves out steps, and what else is not needed, as long as the program still fails.
    Traffic shrunk(Predicate<Traffic> fails) {
        Traffic least = this;
        for (Traffic plainer : List.of(
                new Traffic(spec, capacityBytes, 0, pauses, inTask, steps),
                new Traffic(spec, capacityBytes, limitBytes, pauses, false, steps))) {
            if (!plainer.equals(least) && fails.test(plainer)) {
                least = plainer;
            }
        }
        for (int chunk = Math.max(1, steps.size() / 2); chunk >= 1; chunk /= 2) {
            boolean smaller;
            do {
                Traffic before = least;
                for (int from = least.steps.size() - chunk; from >= 0; from -= chunk) {
                    Traffic without = least.without(from, from + chunk);
                    if (fails.test(without)) {
                        least = without;
                        from = Math.min(from, least.steps.size());
                    }
                }
                smaller = least.steps.size() < before.steps.size();
            } while (smaller);
        }
        return least;
    }

    private Traffic without(int from, int to) {
        List<Step> left = new ArrayList<>(steps);
        left.subList(from, Math.min(to, left.size())).clear();
        return new Traffic(spec, capacityBytes, limitBytes, pauses, inTask, List.copyOf(left));
    }

    /// Returns the program as lines for people.
    String text() {
        return spec + " on " + (capacityBytes >> 20) + " MiB" + (limitBytes == 0 ? "" : ", limit " + limitBytes)
                + (pauses ? ", pauses" : "") + (inTask ? ", in a task" : "")
                + steps.stream().map(step -> "\n    " + step).collect(Collectors.joining());
    }

    /// Draws the steps of a program.
    private static final class Draw {
        private static final List<Integer> CAPACITIES = List.of(64, 96, 128, 256);
        private static final long PAGE = 2 << 20;

        private final SplittableRandom random;
        private final String spec;
        private final long capacityBytes;
        private final boolean graphs;
        private final boolean spills;
        private final boolean pools;
        private final boolean threads;
        private final boolean limits;
        private final List<Integer> live = new ArrayList<>();
        private final List<Integer> spillable = new ArrayList<>();
        private final List<Integer> captured = new ArrayList<>();
        private final List<Step> steps = new ArrayList<>();
        private int slots;

        Draw(String spec, long seed) {
            this.spec = spec;
            random = new SplittableRandom(seed * 31 + spec.hashCode());
            capacityBytes = (long) CAPACITIES.get(random.nextInt(CAPACITIES.size())) << 20;
            graphs = oneIn(3);
            spills = oneIn(3);
            pools = oneIn(3);
            threads = oneIn(4) && !spec.startsWith("confined");
            limits = oneIn(5);
        }

        private boolean oneIn(int n) {
            return random.nextInt(n) == 0;
        }

        Traffic traffic() {
            long limitBytes = limits ? capacityBytes / 8 * random.nextInt(4, 8) : 0;
            boolean inTask = spec.startsWith("arbiter") && random.nextBoolean();
            boolean pauses = random.nextBoolean();
            if (limits) {
                steps.add(new LimitScopes(capacityBytes / 16 * random.nextInt(1, 8)));
            }
            int count = random.nextInt(15, 70);
            while (steps.size() < count) {
                step(random.nextInt(100));
            }
            return new Traffic(spec, capacityBytes, limitBytes, pauses, inTask, List.copyOf(steps));
        }

        private void step(int dice) {
            if (dice < 40) {
                allocate();
            } else if (dice < 45) {
                sprinkle();
            } else if (dice < 68) {
                free();
            } else if (dice < 71) {
                use();
            } else if (dice < 79) {
                steps.add(new Work(stream(), random.nextInt(1, 20_000)));
            } else if (dice < 81) {
                steps.add(new Synchronize(stream()));
            } else if (dice < 82) {
                steps.add(new Trim(oneIn(2) ? 0 : random.nextLong(capacityBytes), random.nextBoolean()));
            } else if (dice < 83) {
                steps.add(new EndStream(stream()));
            } else if (dice < 88) {
                pool();
            } else if (dice < 94) {
                spill();
            } else {
                graph();
            }
        }

        private void allocate() {
            steps.add(new Allocate(newSlot(live), size(), stream(), route(), elsewhere()));
        }

        private void sprinkle() {
            long byteSize = 1 + (long) Math.pow(2, random.nextDouble(9, 19));
            int count = (int) Math.min(600, capacityBytes / random.nextInt(2, 17) / byteSize);
            steps.add(new Sprinkle(
                    newSlot(live), Math.max(1, count), byteSize, stream(), random.nextInt(1, 70), elsewhere()));
        }

        private void free() {
            if (!live.isEmpty()) {
                int slot = takenFrom(live);
                steps.add(new Free(slot, oneIn(4) ? stream() : -1, elsewhere()));
            }
        }

        private void use() {
            if (!live.isEmpty()) {
                steps.add(new Use(live.get(random.nextInt(live.size())), stream()));
            }
        }

        private void pool() {
            if (!pools) {
                return;
            }
            if (oneIn(4)) {
                steps.add(new ClosePool());
                return;
            }
            List<String> specs = List.of(
                    spec.startsWith("logging") ? "vmm" : spec, // a file has one writer
                    "caching",
                    "caching:source=linear",
                    "caching:max_bytes=" + (capacityBytes >> 2),
                    "async",
                    "async:release_threshold=zero",
                    "direct");
            String own = specs.get(random.nextInt(specs.size()));
            long limitBytes = oneIn(2) ? 0 : capacityBytes / 16 * random.nextInt(1, 12);
            long initialBytes = oneIn(2) || (limitBytes == 0 && oneIn(2))
                    ? 0
                    : random.nextLong(1, limitBytes == 0 ? capacityBytes / 2 : limitBytes);
            steps.add(new OpenPool(own, limitBytes, initialBytes, own.startsWith("caching") && oneIn(3)));
        }

        private void spill() {
            if (!spills) {
                return;
            }
            int dice = random.nextInt(10);
            if (spillable.isEmpty() || dice < 5) {
                long byteSize = oneIn(2) ? capacityBytes / random.nextInt(8, 40) : size();
                steps.add(new Spillable(newSlot(spillable), byteSize, stream(), random.nextInt(2)));
            } else if (dice < 9) {
                steps.add(new Acquire(spillable.get(random.nextInt(spillable.size())), stream(), oneIn(6)));
            } else {
                steps.add(new CloseSpillable(takenFrom(spillable)));
            }
        }

        private void graph() {
            if (!graphs) {
                return;
            }
            int dice = random.nextInt(10);
            if (dice < 4) {
                int count = random.nextInt(1, 4);
                List<Long> sizes = random.longs(count, 1, capacityBytes / 6)
                        .map(size -> oneIn(2) ? 1 + size % 100_000 : size)
                        .boxed()
                        .toList();
                boolean launches = !oneIn(3);
                steps.add(new Graph(newSlot(captured), stream(), sizes, launches ? random.nextInt(2) : 0, launches));
            } else if (dice < 7 && !captured.isEmpty()) {
                steps.add(new CloseGraph(takenFrom(captured), random.nextBoolean()));
            } else if (dice < 8) {
                steps.add(new BeginCapture(stream()));
            } else {
                steps.add(new EndCapture());
            }
        }

        private int newSlot(List<Integer> list) {
            list.add(slots);
            return slots++;
        }

        private int takenFrom(List<Integer> list) {
            return list.remove(/* index */ random.nextInt(list.size()));
        }

        private int stream() {
            return random.nextInt(STREAMS);
        }

        private boolean elsewhere() {
            return threads && oneIn(4);
        }

        private Route route() {
            if (pools && oneIn(3)) {
                return Route.POOL;
            }
            return limits && oneIn(3) ? Route.LIMITED : Route.CURRENT;
        }

        private long size() {
            return switch (random.nextInt(6)) {
                case 0 -> random.nextLong(1, 64 << 10);
                case 1 -> random.nextLong(1, capacityBytes / 2);
                case 2 -> PAGE * random.nextInt(1, 1 + (int) (capacityBytes / PAGE / 3)) + random.nextInt(-1, 2);
                case 3 -> random.nextLong(1, capacityBytes / 8);
                default -> (long) Math.pow(2, random.nextDouble(63 - Long.numberOfLeadingZeros(capacityBytes / 2)));
            };
        }
    }
}
