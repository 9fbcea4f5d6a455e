package io.cistern.observability;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Real Python reads our pickles, with nothing but its own library.
final class PythonReadsSnapshotTests extends ObservedMemory {
    private static final String PROGRAM = """
            import pickle, sys
            with open(sys.argv[1], 'rb') as file:
                snapshot = pickle.load(file)
            for segment in snapshot['segments']:
                assert type(segment['segment_pool_id']) is tuple, segment
                assert sum(block['size'] for block in segment['blocks']) == segment['total_size']
            live = sum(block['requested_size'] for segment in snapshot['segments'] for block in segment['blocks']
                       if block['state'] == 'active_allocated')
            balance = {'alloc': 1, 'free_completed': -1}
            traced = sum(balance.get(entry['action'], 0) * entry['size'] for entry in snapshot['device_traces'][0])
            frames = snapshot['device_traces'][0][-1]['frames']
            print(live, traced, frames[0]['name'].rsplit('.', 1)[-1])
            """;

    @Test
    void itsSumsAreOurs(@TempDir Path folder) throws IOException, InterruptedException {
        assumeTrue(hasPython(), "no python3 on the PATH");
        history.start(HistoryOptions.withStacks());
        long kept = allocate(3_000_000);
        free(allocate(700));
        long last = allocate(5_000_000);
        Path file = folder.resolve("snapshot.pickle");
        MemorySnapshot.take(memory).write(file);
        assertThat(python(PROGRAM, file)).isEqualTo("8000000 8000000 allocate\n");
        free(kept);
        free(last);
    }

    private static boolean hasPython() throws InterruptedException {
        try {
            return new ProcessBuilder("python3", "--version").start().waitFor() == 0;
        } catch (IOException absent) {
            return false;
        }
    }

    private static String python(String program, Path file) throws IOException, InterruptedException {
        Path script = Files.writeString(file.resolveSibling("read.py"), program);
        Process process = new ProcessBuilder("python3", script.toString(), file.toString())
                .redirectErrorStream(true)
                .start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        return output;
    }
}
