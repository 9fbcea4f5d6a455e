package io.cistern.cuda.ffm;

import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;

/// Java code that a stream runs when it gets there.
///
/// C calls one function with a word of the caller's. That function is one stub for all, which lives as long as the
/// program (a stub can't be freed by the code it is running), and the word is the key under which the code is kept
/// until it has run. The driver calls on a thread of its own.
final class HostFunctions {
    private static final System.Logger LOG = System.getLogger(HostFunctions.class.getName());
    private static final ConcurrentMap<Long, Runnable> WAITING = new ConcurrentHashMap<>();
    private static final AtomicLong LAST_KEY = new AtomicLong();
    private static final long ENTRY_POINT = stub();

    private HostFunctions() {}

    @SuppressWarnings("restricted")
    private static long stub() {
        try {
            return Linker.nativeLinker()
                    .upcallStub(
                            MethodHandles.lookup()
                                    .findStatic(
                                            HostFunctions.class, "run", MethodType.methodType(void.class, long.class)),
                            FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG),
                            Arena.global())
                    .address();
        } catch (ReflectiveOperationException e) {
            throw new LinkageError("HostFunctions.run", e);
        }
    }

    /// The C function to give to the driver.
    static long entryPoint() {
        return ENTRY_POINT;
    }

    /// Keeps code until it has run.
    ///
    /// @return the word to give to the driver
    static long keep(Runnable function) {
        long key = LAST_KEY.incrementAndGet();
        WAITING.put(key, function);
        return key;
    }

    /// Drops code that the driver will not run.
    static void forget(long key) {
        WAITING.remove(key);
    }

    static int waiting() {
        return WAITING.size();
    }

    /// Called from C: what is thrown here would end the JVM.
    static void run(long key) {
        try {
            Runnable function = WAITING.remove(key);
            if (function != null) {
                function.run();
            }
        } catch (Throwable e) {
            log(e);
        }
    }

    private static void log(Throwable thrown) {
        try {
            LOG.log(Level.ERROR, "a host function threw", thrown);
        } catch (Throwable _) {
            // A logger that throws has no one left to tell.
        }
    }
}
