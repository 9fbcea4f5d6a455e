package io.cistern.cli;

import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/// Lets a suite run on the simulated GPU.
final class OnTheSimulatedGpu implements BeforeAllCallback, AfterAllCallback {
    private static final String DRIVER = "cistern.testkit.driver";

    @Override
    public void beforeAll(ExtensionContext suite) {
        System.setProperty(DRIVER, "simulated");
    }

    @Override
    public void afterAll(ExtensionContext suite) {
        System.clearProperty(DRIVER);
    }
}
