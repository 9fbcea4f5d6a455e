package io.cistern.cli.common;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.regex.Pattern;

/// The content of a file by its first bytes, whatever its name: the first of these whose pattern they match.
public enum Content {
    EMPTY("empty", "", "\\z"),
    GZIP("a gzip file inside another one", "unpack it", "\u001f\u008b"),
    XZ("xz-compressed", "unpack it", "\u00fd7zXZ"),
    BZIP2("bzip2-compressed", "unpack it", "BZh"),
    ZSTANDARD("zstd-compressed", "unpack it", "\\(\u00b5/\u00fd"),
    ZIP("a zip archive inside another one", "unpack it", "PK(\\x03\\x04|\\x05\\x06)"),
    /// Python's, of protocol 2 or later, or a dictionary.
    PICKLE("a pickle", "cistern fit reads it, and cistern import makes a trace from it", "[\u0080(}]"),
    /// Of its `logging_resource_adaptor`.
    RMM_LOG(
            "an RMM log",
            "cistern fit reads it, and cistern import makes a trace from it",
            "Thread,Time,Action,Pointer,Size,Stream"),
    TRACE("a trace", "cistern fit and cistern replay read it", "op,id,bytes"),
    /// As `json.dump` writes what `torch.cuda.memory._snapshot` returns.
    TORCH_JSON(
            "a PyTorch snapshot as JSON",
            "name the pickle that torch.cuda.memory._dump_snapshot writes",
            "\\s*\\{\\s*\"(segments|device_traces|allocator_settings|external_annotations)\""),
    JSON("JSON", "cistern report makes a page from Cistern's snapshots", "\\s*\\{"),
    WEB_PAGE("a web page", "name the file that it was made from", "(?i)\\s*<(!doctype )?html"),
    OTHER("", "", "");

    /// The columns of RMM's logs.
    public static final String RMM_COLUMNS = RMM_LOG.begin.pattern();

    /// Some spreadsheets put it before the first line: U+FEFF in UTF-8, read byte by byte.
    private static final String BYTE_ORDER_MARK = "\u00ef\u00bb\u00bf";

    private static final int MAX_BYTES = 64;

    private final String noun;
    private final String advice;
    private final Pattern begin;

    Content(String noun, String advice, String begin) {
        this.noun = noun;
        this.advice = advice;
        this.begin = Pattern.compile(begin);
    }

    /// Returns what a stream holds, which stays at its place.
    ///
    /// @param in with marks
    public static Content of(InputStream in) throws IOException {
        in.mark(MAX_BYTES);
        String text = withoutMark(new String(in.readNBytes(MAX_BYTES), StandardCharsets.ISO_8859_1));
        in.reset();
        return Arrays.stream(values())
                .filter(each -> each.begin.matcher(text).lookingAt())
                .findFirst()
                .orElse(OTHER);
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
