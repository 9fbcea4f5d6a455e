package io.cistern.cli.common;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;

/// The content of a file by its first bytes, whatever its name.
public enum Content {
    /// Python's, of protocol 2 or later, or a dictionary.
    PICKLE("a pickle", "cistern fit reads it, and cistern import makes a trace from it"),
    JSON("JSON", "cistern report makes a page from Cistern's snapshots"),
    /// As `json.dump` writes what `torch.cuda.memory._snapshot` returns.
    TORCH_JSON("a PyTorch snapshot as JSON", "name the pickle that torch.cuda.memory._dump_snapshot writes"),
    TRACE("a trace", "cistern fit and cistern replay read it"),
    /// Of its `logging_resource_adaptor`.
    RMM_LOG("an RMM log", "cistern fit reads it, and cistern import makes a trace from it"),
    GZIP("a gzip file inside another one", "unpack it"),
    XZ("xz-compressed", "unpack it"),
    BZIP2("bzip2-compressed", "unpack it"),
    ZSTANDARD("zstd-compressed", "unpack it"),
    ZIP("a zip archive inside another one", "unpack it"),
    WEB_PAGE("a web page", "name the file that it was made from"),
    EMPTY("empty", ""),
    OTHER("", "");

    /// The columns of RMM's logs.
    public static final String RMM_COLUMNS = "Thread,Time,Action,Pointer,Size,Stream";

    private static final Set<Integer> PICKLES = Set.of(0x80, (int) '(', (int) '}');
    /// Some spreadsheets put it before the first line: U+FEFF in UTF-8, read byte by byte.
    private static final String BYTE_ORDER_MARK = "\u00ef\u00bb\u00bf";

    private static final Pattern TORCH_FIELD =
            Pattern.compile("\\s*\\{\\s*\"(segments|device_traces|allocator_settings|external_annotations)\"");

    private static final int MAX_BYTES = 64;

    private final String noun;
    private final String advice;

    Content(String noun, String advice) {
        this.noun = noun;
        this.advice = advice;
    }

    /// Returns what a stream holds, which stays at its place.
    ///
    /// @param in with marks
    public static Content of(InputStream in) throws IOException {
        in.mark(MAX_BYTES);
        byte[] bytes = in.readNBytes(MAX_BYTES);
        in.reset();
        if (bytes.length == 0) {
            return EMPTY;
        }
        String begin = withoutMark(new String(bytes, StandardCharsets.ISO_8859_1));
        if (begin.startsWith("\u001f\u008b")) {
            return GZIP;
        }
        if (begin.startsWith("\u00fd7zXZ")) {
            return XZ;
        }
        if (begin.startsWith("BZh")) {
            return BZIP2;
        }
        if (begin.startsWith("(\u00b5/\u00fd")) {
            return ZSTANDARD;
        }
        if (begin.startsWith("PK\3\4") || begin.startsWith("PK\5\6")) {
            return ZIP;
        }
        if (PICKLES.contains((int) begin.charAt(0))) {
            return PICKLE;
        }
        return ofText(begin);
    }

    private static Content ofText(String begin) {
        if (begin.startsWith(RMM_COLUMNS)) {
            return RMM_LOG;
        }
        if (begin.startsWith("op,id,bytes")) {
            return TRACE;
        }
        if (TORCH_FIELD.matcher(begin).lookingAt()) {
            return TORCH_JSON;
        }
        String word = begin.stripLeading().toLowerCase(Locale.ROOT);
        return word.startsWith("{")
                ? JSON
                : word.startsWith("<!doctype html") || word.startsWith("<html") ? WEB_PAGE : OTHER;
    }

    /// Returns a text without the byte order mark before it.
    ///
    /// @param text read byte by byte
    static String withoutMark(String text) {
        return text.startsWith(BYTE_ORDER_MARK) ? text.substring(BYTE_ORDER_MARK.length()) : text;
    }

    /// Returns an error that says what the file is.
    ///
    /// @param wanted what it should be
    public InputException error(String file, String wanted) {
        return new InputException(
                file,
                this == EMPTY
                        ? "the file is empty"
                        : "is " + (this == OTHER ? "" : noun + ", ") + "not " + wanted
                                + (advice.isEmpty() ? "" : "; " + advice));
    }
}
