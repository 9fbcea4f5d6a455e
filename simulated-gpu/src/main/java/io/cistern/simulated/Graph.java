package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;
import static io.cistern.simulated.internal.memory.DriverFailure.require;

import io.cistern.cuda.CudaResult;
import io.cistern.simulated.GraphMemory.GraphAllocation;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.stream.StreamClock;
import io.cistern.simulated.internal.stream.Work;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// A graph: nodes in an order in which they can run, the memory that they allocate and free, and code to run
/// when the graph is gone. Guarded by the machine's lock.
final class Graph {
    final int device;
    private final GraphMemory memory;
    private final HandleTable handles;
    final List<GraphNode> nodes = new ArrayList<>();
    private final Map<GraphAllocation, GraphNode> frees = new LinkedHashMap<>();
    final List<GraphAllocation> allocations = new ArrayList<>();
    final List<Runnable> retained = new ArrayList<>();

    /// The last launches of executables that are gone; the launches may still be running.
    private final List<Work> launches = new ArrayList<>();
    final StreamClock launched = new StreamClock();

    /// Counts the graph itself and its executables.
    private int references = 1;

    private int executables;

    Graph(int device, GraphMemory memory, HandleTable handles) {
        this.device = device;
        this.memory = memory;
        this.handles = handles;
    }

    List<GraphAllocation> unfreed() {
        return allocations.stream()
                .filter(allocation -> !frees.containsKey(allocation))
                .toList();
    }

    GraphNode add(String kind, List<GraphNode> dependencies, GraphNode.Issue work) {
        GraphNode node = new GraphNode(handles.next(), kind, List.copyOf(dependencies), work);
        handles.put(node.handle(), node);
        nodes.add(node);
        return node;
    }

    /// Adds an allocation. It reuses the address of an earlier allocation of the same size whose free
    /// precedes it in the graph, if one was not reused yet.
    GraphNode allocate(List<GraphNode> dependencies, long byteSize) {
        GraphAllocation allocation = allocations.stream()
                .filter(old -> old.byteSize == byteSize && !old.reused)
                .filter(old -> frees.containsKey(old) && frees.get(old).precedes(dependencies))
                .findFirst()
                .map(memory::again)
                .orElseGet(() -> memory.reserve(byteSize));
        allocations.add(allocation);
        return add("allocation", dependencies, allocation::allocate);
    }

    GraphAllocation latest() {
        return allocations.getLast();
    }

    /// Adds the free of an allocation of this graph, or of another one.
    GraphNode free(List<GraphNode> dependencies, long address) {
        GraphAllocation allocation = memory.find(address);
        if (allocation == null || frees.containsKey(allocation)) {
            throw new DriverFailure(CudaResult.INVALID_VALUE);
        }
        GraphNode node = add("free", dependencies, allocation::free);
        frees.put(allocation, node);
        return node;
    }

    void instantiated() {
        failIf(executables > 0 && (!allocations.isEmpty() || !frees.isEmpty()), CudaResult.NOT_SUPPORTED);
        executables++;
        references++;
    }

    /// Records that an executable is gone; its last launch may still be running.
    ///
    /// @param through what happened before the end of that launch
    void executableGone(@Nullable Work lastLaunch, StreamClock through) {
        executables--;
        if (lastLaunch != null) {
            launches.add(lastLaunch);
            launched.include(through);
        }
    }

    /// Drops one reference, the graph's own or an executable's, and returns whether it was the last.
    boolean release() {
        require(references > 0);
        if (--references > 0) {
            return false;
        }
        nodes.forEach(node -> handles.forget(node.handle()));
        return true;
    }

    /// Returns work that releases the memory of a graph that is gone, after the graph's launches and the
    /// frees of that memory. Live memory outlives the graph until it is freed.
    Work end() {
        List<GraphAllocation> dead =
                allocations.stream().filter(each -> !each.outlives()).toList();
        List<Work> before = new ArrayList<>(launches);
        dead.stream().flatMap(each -> each.freed.stream()).forEach(before::add);
        return new Work(0, () -> dead.forEach(memory::forget), null, before);
    }
}
