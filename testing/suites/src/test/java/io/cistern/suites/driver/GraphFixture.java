package io.cistern.suites.driver;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Graphs;
import java.util.LinkedHashSet;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/// Provides captures and graphs that end after the test, whatever the test does.
abstract class GraphFixture extends DriverContractTests {
    Graphs graphs;
    private final Set<Long> begun = new LinkedHashSet<>();

    GraphFixture(DriverContract suite) {
        super(suite);
    }

    @BeforeEach
    void takeGraphs() {
        graphs = driver.graphs();
    }

    /// Begins a capture that ends after the test at the latest.
    long captured(CaptureMode mode) {
        long stream = stream();
        begin(stream, mode);
        return stream;
    }

    void begin(long stream, CaptureMode mode) {
        graphs.beginCapture(DEVICE, stream, mode);
        begun.add(stream);
    }

    /// Ends captures that a failed test left, because they would make every later capture fail.
    @AfterEach
    void endCaptures() {
        for (long stream : begun) {
            if (graphs.captureStatus(DEVICE, stream) != CaptureStatus.NONE) {
                abandon(stream);
            }
        }
    }

    /// Ends a capture that went wrong, however the driver reports it.
    void abandon(long stream) {
        try {
            graphs.destroy(DEVICE, graphs.endCapture(DEVICE, stream));
        } catch (CudaException expected) {
            // The capture is over either way.
        }
    }

    /// Ends a capture and returns the graph, which is destroyed after the test.
    long graphOf(long stream) {
        long graph = graphs.endCapture(DEVICE, stream);
        afterwards(() -> graphs.destroy(DEVICE, graph));
        return graph;
    }

    long executable(long graph) {
        long executable = graphs.instantiate(DEVICE, graph, false);
        afterwards(() -> graphs.destroyExecutable(DEVICE, executable));
        return executable;
    }

    void launch(long executable, long stream) {
        graphs.launch(DEVICE, executable, stream);
    }

    void fill(long address, int value, long stream) {
        driver.copies().fillBytes(DEVICE, address, (byte) value, KIB, stream);
    }

    /// Makes a stream wait for all work enqueued so far on another.
    void follow(long follower, long stream) {
        driver.streams().await(DEVICE, follower, eventOn(stream));
    }

    boolean holds(long address, int value, long stream) {
        return host(KIB).readFrom(address, stream).holdsOnly(value);
    }

    static void inAnotherThread(Runnable body) {
        Throwable[] failure = new Throwable[1];
        Thread thread = Thread.ofPlatform().start(() -> {
            try {
                body.run();
            } catch (Throwable e) {
                failure[0] = e;
            }
        });
        join(thread);
        if (failure[0] instanceof Error error) {
            throw error;
        }
        if (failure[0] instanceof RuntimeException e) {
            throw e;
        }
    }
}
