package io.cistern.benchmarks.programs;

import io.cistern.cli.generated.GeneratedTrace;
import io.cistern.cli.generated.TraceSink;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// The rows that one seed generates for a family.
///
/// @param rows the rows in order
/// @param peakBytes the most bytes live at once
record GeneratedProgram(List<ProgramRow> rows, long peakBytes) {
    static GeneratedProgram of(GeneratedTrace family, long seed, long capacityBytes) {
        Rows rows = new Rows();
        family.write(seed, capacityBytes, rows);
        return new GeneratedProgram(rows.rows, rows.peakBytes);
    }

    private static final class Rows implements TraceSink {
        private final List<ProgramRow> rows = new ArrayList<>();
        private final Map<Long, Long> live = new HashMap<>();
        private long liveBytes;
        private long peakBytes;

        @Override
        public void allocate(long id, long byteSize, long stream) {
            rows.add(new ProgramRow('a', id, byteSize, stream));
            live.put(id, byteSize);
            liveBytes += byteSize;
            peakBytes = Math.max(peakBytes, liveBytes);
        }

        @Override
        public void free(long id, long stream) {
            rows.add(new ProgramRow('f', id, 0, stream));
            liveBytes -= Objects.requireNonNull(live.remove(id));
        }

        @Override
        public void use(long id, long stream) {
            rows.add(new ProgramRow('u', id, 0, stream));
        }

        @Override
        public void await(long stream, long awaited) {
            rows.add(new ProgramRow('w', awaited, 0, stream));
        }

        @Override
        public void end(long stream) {
            rows.add(new ProgramRow('e', 0, 0, stream));
        }
    }
}
