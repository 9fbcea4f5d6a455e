package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;
import static io.cistern.simulated.internal.memory.DriverFailure.require;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.LinearMemory.AddressRange;
import io.cistern.cuda.Modules;
import io.cistern.cuda.Modules.Extent;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.stream.Gate;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// [Modules] over the model: a kernel runs as the Java function that is registered under its entry's name.
final class SimulatedModules implements Modules {
    private static final String ENTRY = "\\.entry\\s+([\\w$]+)";
    /// Limits of an H200: threads in a block, and shared bytes of a kernel that does not opt in to more.
    private static final int MAX_THREADS = 1024;
    private static final int MAX_SHARED_BYTES = 48 << 10;

    private final Machine machine;

    SimulatedModules(Machine machine) {
        this.machine = machine;
    }

    @Override
    public long load(int device, String ptx) {
        return machine.call(DriverCall.MODULE_LOAD_DATA, device, () -> {
            failIf(!ptx.contains(".version"), CudaResult.INVALID_IMAGE);
            failIf(!ptx.contains(".target"), CudaResult.INVALID_PTX);
            Set<String> entries = Pattern.compile(ENTRY)
                    .matcher(ptx)
                    .results()
                    .map((MatchResult match) -> match.group(1))
                    .collect(Collectors.toUnmodifiableSet());
            return machine.handles.register(new Module(device, entries));
        });
    }

    @Override
    public void unload(int device, long module) {
        DriverCall call = DriverCall.MODULE_UNLOAD;
        machine.run(call, device, () -> "module=" + module, () -> {
            machine.handles.find(Module.class, module, CudaResult.INVALID_HANDLE, call, device);
            machine.handles.forget(module);
        });
    }

    @Override
    public long function(int device, long module, String name) {
        DriverCall call = DriverCall.MODULE_GET_FUNCTION;
        return machine.call(call, device, () -> "module=" + module + ", name=" + name, () -> {
            Module found = machine.handles.find(Module.class, module, CudaResult.INVALID_HANDLE, call, device);
            failIf(!found.entries().contains(name), CudaResult.NOT_FOUND);
            SimulatedKernel kernel = machine.kernels.find(name);
            if (kernel == null) {
                throw new DriverFailure(
                        CudaResult.NOT_SUPPORTED,
                        "a simulated GPU can't run PTX: give it a Java function of that name (SimulatedKernels), or use"
                                + " a real GPU");
            }
            return machine.handles.register(new Function(device, name, kernel));
        });
    }

    @Override
    public void launch(int device, long function, Grid grid, long stream, Object... arguments) {
        DriverCall call = DriverCall.LAUNCH_KERNEL;
        machine.run(call, device, () -> "function=" + function + ", " + grid + ", stream=" + stream, () -> {
            Function found = machine.handles.find(Function.class, function, CudaResult.INVALID_HANDLE, call, device);
            StreamQueue queue = machine.streams.find(call, device, stream);
            require(isLegal(grid.blocks())
                    && isLegal(grid.threads())
                    && grid.threads().count() <= MAX_THREADS);
            require(grid.sharedBytes() >= 0 && grid.sharedBytes() <= MAX_SHARED_BYTES);
            KernelMemory memory = new KernelMemory(machine.view(call, device));
            KernelLaunch launch = new KernelLaunch(device, grid, values(arguments), memory);
            SimulatedKernel kernel = found.kernel();
            List<AddressRange> uses = new ArrayList<>();
            long nanos = prepare(found, launch, uses);
            Runnable effect = machine.effect(device, () -> kernel.run(launch));
            machine.give(queue, "kernel", each -> {
                uses.forEach(range -> machine.use(call, each, range.address(), range.byteSize()));
                machine.streams.enqueue(each, new Work(nanos, effect, new Spinning(kernel, launch), List.of()));
            });
        });
    }

    private static List<Object> values(Object[] arguments) {
        return Stream.of(arguments).map(SimulatedModules::value).toList();
    }

    private static Object value(Object argument) {
        return switch (argument) {
            case Region region -> region.address();
            case Long _, Integer _, Float _, Double _, Short _, Byte _ -> argument;
            default ->
                throw new IllegalArgumentException(
                        "a kernel can't take " + argument.getClass().getName());
        };
    }

    private static boolean isLegal(Extent extent) {
        return extent.x() > 0 && extent.y() > 0 && extent.z() > 0;
    }

    /// Determines what memory the kernel will use, and how long it will run.
    private long prepare(Function function, KernelLaunch launch, List<AddressRange> uses) {
        try {
            uses.addAll(function.kernel().uses(launch));
            return function.kernel().durationNanos(launch);
        } catch (IndexOutOfBoundsException | ClassCastException wrongArguments) {
            machine.hazards.report(
                    Misuse.Kind.BROKEN_KERNEL,
                    DriverCall.LAUNCH_KERNEL,
                    launch.device(),
                    0,
                    function.name() + " got the wrong arguments: " + wrongArguments.getMessage());
            throw new DriverFailure(CudaResult.INVALID_VALUE);
        }
    }

    record Module(int device, Set<String> entries) {}

    private record Function(int device, String name, SimulatedKernel kernel) {}

    /// The gate of a kernel that may spin. If it spins on an illegal address, it ends at once with the error.
    private final class Spinning implements Gate {
        private final SimulatedKernel kernel;
        private final KernelLaunch launch;
        private boolean spins;

        Spinning(SimulatedKernel kernel, KernelLaunch launch) {
            this.kernel = kernel;
            this.launch = launch;
        }

        @Override
        public boolean isClosed() {
            spins = false;
            machine.effect(launch.device(), () -> spins = kernel.spins(launch)).run();
            return spins;
        }
    }
}
