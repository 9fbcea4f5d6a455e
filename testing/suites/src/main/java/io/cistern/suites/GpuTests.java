package io.cistern.suites;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.cistern.cuda.CudaDriver;
import io.cistern.suites.buffers.Buffers;
import io.cistern.suites.nccl.OneGpuNccl;
import io.cistern.suites.nccl.TwoGpuNccl;
import io.cistern.suites.nccl.TwoProcessNccl;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.reporting.ReportEntry;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/// Runs the driver contract and the conformance of every allocator on a GPU, without a build tool.
///
/// ```text
/// io.cistern.suites.GpuTests [--driver auto|simulated|cuda] [--suite NAME]… [--list]
/// ```
///
/// A suite's name is that of its class; without any, all run but [SharedStreams], which is long, [SharedPools],
/// which starts further processes, [CarelessLibrary], which needs a library, [Buffers], captures, sleep, pools
/// between devices, and those of NCCL.
///
/// Prints each failure with its stack trace, what tests have to tell, and in the end `N passed, N failed, N skipped`.
/// Exit codes: 0 when all passed, 1 when one failed or none ran, 2 for a wrong option or a driver that can't be used.
public final class GpuTests {
    private static final String USAGE = "usage: GpuTests [--driver auto|simulated|cuda] [--suite NAME]... [--list]";
    private static final List<String> DRIVERS = List.of(DriverUnderTest.AUTO, "simulated", "cuda");

    private static final List<Class<?>> USUAL = List.of(
            ChosenDriverContract.class, CatalogConformance.class, ChosenScopedPools.class, SeededSituations.class);
    private static final List<Class<?>> BY_NAME = List.of(
            SharedStreams.class,
            SharedPools.class,
            CarelessLibrary.class,
            Buffers.class,
            ChosenCapturedGraphs.class,
            ChosenCheckpointedGraphs.class,
            ChosenGraphContract.class,
            ChosenSleepingPools.class,
            ChosenPoolsBetweenDevices.class,
            OneGpuNccl.class,
            TwoGpuNccl.class,
            TwoProcessNccl.class);

    private final PrintWriter out;

    GpuTests(PrintWriter out) {
        this.out = out;
    }

    /// Runs the suites and ends the process.
    ///
    /// @param arguments the options
    public static void main(String[] arguments) {
        PrintWriter out = new PrintWriter(System.out, true, StandardCharsets.UTF_8);
        System.exit(new GpuTests(out).run(arguments));
    }

    int run(String... arguments) {
        String driver = DriverUnderTest.AUTO;
        boolean list = false;
        List<Class<?>> suites = new ArrayList<>();
        for (int i = 0; i < arguments.length; i++) {
            if (arguments[i].equals("--list")) {
                list = true;
            } else if (arguments[i].equals("--driver")
                    && i + 1 < arguments.length
                    && DRIVERS.contains(arguments[i + 1])) {
                driver = arguments[++i];
            } else if (arguments[i].equals("--suite")
                    && i + 1 < arguments.length
                    && suite(arguments[i + 1]).isPresent()) {
                suites.add(suite(arguments[++i]).get());
            } else {
                out.println(USAGE);
                return 2;
            }
        }
        return run(driver, list, (suites.isEmpty() ? USUAL : suites).toArray(Class<?>[]::new));
    }

    private static Optional<Class<?>> suite(String name) {
        return Stream.concat(USUAL.stream(), BY_NAME.stream())
                .filter(suite -> suite.getSimpleName().equals(name))
                .findFirst();
    }

    private int run(String driver, boolean list, Class<?>... suites) {
        Optional<String> before = Optional.ofNullable(System.getProperty(DriverUnderTest.PROPERTY));
        System.setProperty(DriverUnderTest.PROPERTY, driver);
        try (CudaDriver found = DriverUnderTest.open()) {
            out.println("driver: " + found.description());
            return list ? list(suites) : execute(suites);
        } catch (IllegalStateException unusable) {
            out.println(unusable.getMessage());
            return 2;
        } finally {
            before.ifPresentOrElse(
                    value -> System.setProperty(DriverUnderTest.PROPERTY, value),
                    () -> System.clearProperty(DriverUnderTest.PROPERTY));
        }
    }

    private int list(Class<?>... suites) {
        try (CudaDriver driver = DriverUnderTest.open()) {
            RunnableSpecs.on(driver).forEach(spec -> out.println("allocator: " + spec));
        }
        TestPlan plan = LauncherFactory.create().discover(request(suites));
        plan.accept(new TestPlan.Visitor() {
            @Override
            public void visit(TestIdentifier test) {
                if (test.isTest()) {
                    out.println(nameOf(plan, test));
                }
            }
        });
        return 0;
    }

    int execute(Class<?>... suites) {
        Launcher launcher = LauncherFactory.create();
        Tally tally = new Tally();
        launcher.execute(request(suites), tally);
        out.println(tally.passed + " passed, " + tally.failed + " failed, " + tally.skipped + " skipped");
        return tally.failed == 0 && tally.passed > 0 ? 0 : 1;
    }

    private static LauncherDiscoveryRequest request(Class<?>... suites) {
        LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request();
        for (Class<?> suite : suites) {
            request.selectors(selectClass(suite));
        }
        return request.build();
    }

    private static String nameOf(TestPlan plan, TestIdentifier test) {
        return plan.getParent(test)
                .map(parent -> nameOf(plan, parent) + " > " + test.getDisplayName())
                .orElse(test.getDisplayName());
    }

    /// Counts tests, and failures of whole classes too.
    private final class Tally implements TestExecutionListener {
        private @Nullable TestPlan plan;
        private int passed;
        private int failed;
        private int skipped;

        @Override
        public void testPlanExecutionStarted(TestPlan started) {
            plan = started;
        }

        private String name(TestIdentifier test) {
            return plan == null ? test.getDisplayName() : nameOf(plan, test);
        }

        @Override
        public void reportingEntryPublished(TestIdentifier test, ReportEntry entry) {
            entry.getKeyValuePairs()
                    .forEach((what, value) -> out.println("told: " + name(test) + ": " + what + ": " + value));
        }

        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            skipped++;
            out.println("skipped: " + name(test) + ": " + reason);
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            switch (result.getStatus()) {
                case SUCCESSFUL -> passed += test.isTest() ? 1 : 0;
                case ABORTED -> {
                    skipped++;
                    result.getThrowable()
                            .ifPresent(reason -> out.println("skipped: " + name(test) + ": " + reason.getMessage()));
                }
                case FAILED -> {
                    failed++;
                    out.println("FAILED: " + name(test));
                    result.getThrowable().ifPresent(failure -> failure.printStackTrace(out));
                }
            }
        }
    }
}
