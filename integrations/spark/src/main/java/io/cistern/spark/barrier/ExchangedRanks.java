package io.cistern.spark.barrier;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.DataType;
import io.cistern.nccl.Reduction;
import io.cistern.nccl.ReductionOp;
import io.cistern.spark.TaskMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import org.apache.spark.BarrierTaskContext;

/// Runs the collectives of simulated devices: the bytes go through Spark's driver, as text.
final class ExchangedRanks extends BarrierRanks {
    ExchangedRanks(BarrierTaskContext context, TaskMemory memory) {
        super(context, memory);
    }

    @Override
    public Optional<Communicator> communicator() {
        return Optional.empty();
    }

    @Override
    public void allReduce(DeviceBuffer inPlace, DataType type, ReductionOp op) {
        byte[] own = read(inPlace, type);
        List<MemorySegment> given = exchange(own);
        MemorySegment result = MemorySegment.ofArray(own);
        new Reduction(type, op).reduce(given, result, own.length / type.byteSize());
        inPlace.copyFrom(result);
    }

    @Override
    public void broadcast(DeviceBuffer inPlace, DataType type, int root) {
        if (root < 0 || root >= rankCount()) {
            throw new IllegalArgumentException("there is no rank " + root + " among " + rankCount() + " ranks");
        }
        byte[] own = root == rank() ? read(inPlace, type) : new byte[0];
        MemorySegment given = exchange(own).get(root);
        if (given.byteSize() != inPlace.byteSize()) {
            throw new IllegalArgumentException(
                    inPlace + " gets " + given.byteSize() + " bytes of rank " + root + ": sizes must be equal");
        }
        inPlace.copyFrom(given);
    }

    private static byte[] read(DeviceBuffer buffer, DataType type) {
        if (buffer.byteSize() % type.byteSize() != 0) {
            throw new IllegalArgumentException(buffer + " does not hold a whole number of " + type + " elements");
        }
        return buffer.elements(ValueLayout.JAVA_BYTE).toBytes();
    }

    private List<MemorySegment> exchange(byte[] own) {
        List<MemorySegment> given = new ArrayList<>();
        for (String text : allGather(context, Base64.getEncoder().encodeToString(own))) {
            given.add(MemorySegment.ofArray(Base64.getDecoder().decode(text)));
        }
        return given;
    }

    @Override
    public void await() {
        memory.stream().synchronize();
    }
}
