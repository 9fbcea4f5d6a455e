package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// A service that decodes pictures of every size on one stream and processes them on another. It scales each
/// picture down step by step, filters it with a workspace, and puts it into a batch of equal ones. Small
/// previews stay in a cache, which drops random ones.
final class Images {
    private static final long STREAM = Program.MAIN_STREAM;
    private static final long DECODER = 2;

    private final Program program;
    private final List<Block> previews = new ArrayList<>();
    private final long largestBytes;
    private final long previewBytes;
    private final long batchBytes;
    private final int decodedAtOnce;
    private final int mostPreviews;
    private final int rows;

    Images(Program program) {
        this.program = program;
        decodedAtOnce = program.between(2, 12);
        largestBytes = program.share(0.1, 0.3) / decodedAtOnce;
        mostPreviews = program.between(200, 2_000);
        previewBytes = program.share(0.05, 0.2) / mostPreviews;
        batchBytes = program.share(0.05, 0.2);
        rows = program.between(15_000, 45_000);
    }

    void run() {
        while (program.rows() < rows) {
            Block batch = program.allocate(batchBytes, STREAM);
            for (int round = program.between(1, 4); round > 0; round--) {
                List<Block> decoded = decode();
                while (!decoded.isEmpty()) {
                    Block picture = decoded.removeFirst();
                    program.use(picture, STREAM);
                    workOn(picture);
                    program.free(picture);
                }
            }
            program.pass(batchBytes / program.between(2, 8), STREAM);
            program.free(batch);
        }
        program.freeAll(previews);
    }

    private List<Block> decode() {
        List<Block> decoded = new ArrayList<>();
        for (int i = program.between(1, decodedAtOnce); i > 0; i--) {
            long byteSize = program.anyOf(largestBytes / 200, largestBytes);
            Block packed = program.allocate(byteSize / program.between(6, 20), DECODER);
            Block planes = program.allocate(byteSize / 2, DECODER);
            decoded.add(program.allocate(byteSize, DECODER));
            program.free(planes);
            program.free(packed);
        }
        return decoded;
    }

    /// Scales a picture down by halves, with the last two steps live at once, and keeps a preview.
    private void workOn(Block picture) {
        Block scaled = program.allocate(4 * picture.byteSize() / 3, STREAM);
        while (scaled.byteSize() > 4 * previewBytes) {
            Block half = program.allocate(scaled.byteSize() / 4, STREAM);
            program.pass(program.anyOf(1024, Math.max(2048, scaled.byteSize())), STREAM);
            program.free(scaled);
            scaled = half;
        }
        previews.add(program.allocate((long) (previewBytes * program.between(0.5, 1)), STREAM));
        program.free(scaled);
        if (previews.size() > mostPreviews) {
            program.freeOneOf(previews);
        }
    }
}
