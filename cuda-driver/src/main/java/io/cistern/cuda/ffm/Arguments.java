package io.cistern.cuda.ffm;

import java.util.Set;
import java.util.StringJoiner;

/// Formats the arguments of a failed call for its error message.
final class Arguments {
    /// Arguments that people read as decimal numbers; all others are addresses and handles, printed in
    /// hexadecimal.
    private static final Set<String> DECIMAL =
            Set.of(("device peer byteSize byteAlignment count value keepBytes attribute"
                            + " advice priority flags blocks threads sharedBytes locationType locationId handleTypes rights"
                            + " recommended fileDescriptor handleType mode updateResult")
                    .split(" ", -1));

    private Arguments() {}

    /// Returns a text such as `device=0, address=0x7f0000000000`.
    ///
    /// @param names the names, separated by a comma and a space; values beyond them are left out
    static String text(String names, long... values) {
        StringJoiner text = new StringJoiner(", ");
        String[] each = names.split(", ", -1);
        for (int i = 0; i < Math.min(each.length, values.length); i++) {
            text.add(each[i] + "=" + (DECIMAL.contains(each[i]) ? Long.toString(values[i]) : hex(values[i])));
        }
        return text.toString();
    }

    static String hex(long value) {
        return "0x" + Long.toHexString(value);
    }
}
