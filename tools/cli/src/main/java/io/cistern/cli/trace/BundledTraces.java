package io.cistern.cli.trace;

import io.cistern.cli.common.InputException;
import io.cistern.cli.common.InputFile;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;

/// The traces that the project ships; `traces/README.md` beside them names their origins.
public final class BundledTraces {
    /// Their names, which the command line accepts instead of a file.
    public static final List<String> NAMES =
            List.of("gpt2_train", "resnet_train", "llama_generate", "gnn_sample", "vit_streams");

    private BundledTraces() {}

    /// The names that shells complete. If none fits, the shell completes files.
    public static final class Candidates implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return NAMES.iterator();
        }
    }

    public static List<Trace> readAll() throws InputException {
        List<Trace> traces = new ArrayList<>();
        for (String name : NAMES) {
            traces.add(read(name));
        }
        return traces;
    }

    public static Trace read(String name) throws InputException {
        return open(name, TraceReader::parse);
    }

    /// Reads a trace by its name.
    ///
    /// @param parser makes something of its rows
    public static <T> T open(String name, InputFile.Parser<T> parser) throws InputException {
        String resource = "traces/" + name + ".csv.gz";
        try (InputStream in = Objects.requireNonNull(
                BundledTraces.class.getResourceAsStream("/io/cistern/cli/" + resource), resource)) {
            return parser.parse(resource, InputFile.unpacked(resource, in));
        } catch (IOException e) {
            throw new InputException(resource, "can't be read: " + e.getMessage());
        }
    }
}
