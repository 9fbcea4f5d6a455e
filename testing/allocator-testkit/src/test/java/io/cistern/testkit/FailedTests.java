package io.cistern.testkit;

import java.util.HashMap;
import java.util.Map;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/// Runs tests inside a test.
final class FailedTests {
    private FailedTests() {}

    /// Returns the failed test methods of a class, and why each failed.
    static Map<String, Throwable> of(Class<?> tests) {
        return of(DiscoverySelectors.selectClass(tests));
    }

    /// Returns the failed test methods, and why each failed.
    static Map<String, Throwable> of(DiscoverySelector tests) {
        Map<String, Throwable> failed = new HashMap<>();
        TestExecutionListener listener = new TestExecutionListener() {
            @Override
            public void executionFinished(TestIdentifier test, TestExecutionResult result) {
                if (result.getStatus() == TestExecutionResult.Status.FAILED) {
                    failed.put(methodOf(test), result.getThrowable().orElseThrow());
                }
            }
        };
        LauncherFactory.create()
                .execute(
                        LauncherDiscoveryRequestBuilder.request()
                                .selectors(tests)
                                .build(),
                        listener);
        return failed;
    }

    private static String methodOf(TestIdentifier test) {
        return test.getSource()
                .filter(MethodSource.class::isInstance)
                .map(source -> ((MethodSource) source).getMethodName())
                .orElse(test.getDisplayName());
    }
}
