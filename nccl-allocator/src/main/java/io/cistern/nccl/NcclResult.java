package io.cistern.nccl;

import java.util.Locale;

/// The results of NCCL's functions, by their names in `nccl.h` without the `nccl` prefix.
public enum NcclResult {
    /// The call succeeded.
    SUCCESS(0, ""),
    /// A CUDA call inside NCCL failed.
    UNHANDLED_CUDA_ERROR(1, "a CUDA call inside NCCL failed"),
    /// A system call failed, for example on a socket, or because /dev/shm is full.
    SYSTEM_ERROR(2, "a system call failed; check sockets, /dev/shm and the output of NCCL_DEBUG=WARN"),
    /// An internal check failed: NCCL has a bug, or memory was overwritten.
    INTERNAL_ERROR(3, "an internal check of NCCL failed; check the output of NCCL_DEBUG=WARN"),
    /// An argument is invalid.
    INVALID_ARGUMENT(4, "an argument is invalid"),
    /// The calls don't match: their order is wrong, one GPU is used twice, or ranks disagree.
    INVALID_USAGE(5, "the calls don't match: one GPU used twice, or ranks that disagree"),
    /// Another rank failed or has exited.
    REMOTE_ERROR(6, "another rank failed or has exited; abort the communicator"),
    /// The work is still in progress; only for non-blocking communicators.
    IN_PROGRESS(7, "still in progress"),
    /// The call took longer than the limit that was set.
    TIMEOUT(8, "it took longer than the time limit"),
    /// A code that this version of Cistern does not know.
    UNKNOWN(-1, "a result that this version does not know");

    private final int code;
    private final String meaning;

    NcclResult(int code, String meaning) {
        this.code = code;
        this.meaning = meaning;
    }

    /// Returns the number in `nccl.h`.
    public int code() {
        return code;
    }

    /// Returns what the result means and what to do about it; empty for success.
    public String meaning() {
        return meaning;
    }

    /// Returns the constant for a code, or [#UNKNOWN].
    public static NcclResult of(int code) {
        for (NcclResult result : values()) {
            if (result.code == code) {
                return result;
            }
        }
        return UNKNOWN;
    }

    /// Returns name, number and meaning, for messages. Never throws.
    static String describe(int code) {
        NcclResult result = of(code);
        String name = result == UNKNOWN ? "ncclResult" : "nccl" + camelCase(result.name());
        return name + " (" + code + ")" + (result.meaning.isEmpty() ? "" : ", " + result.meaning);
    }

    private static String camelCase(String name) {
        StringBuilder text = new StringBuilder();
        for (String word : name.split("_", -1)) {
            text.append(word.charAt(0)).append(word.substring(1).toLowerCase(Locale.ROOT));
        }
        return text.toString();
    }
}
