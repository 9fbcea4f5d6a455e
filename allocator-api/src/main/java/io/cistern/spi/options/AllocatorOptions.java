package io.cistern.spi.options;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// The options of one spec. Each is read with its type; after the provider's `open` returns, an option that it never
/// asked for is an error that names the nearest one that it did.
///
/// Every method throws [io.cistern.errors.ConfigurationException], naming key and legal values, for a value of
/// another type.
public interface AllocatorOptions {
    /// A text.
    Optional<String> text(String key);

    /// A number of bytes: `1048576`, `64KiB`, `2MiB`, `8GiB`, `0.5GiB`.
    Optional<Long> bytes(String key);

    /// A whole number between two bounds, both included.
    Optional<Long> number(String key, long least, long most);

    /// A fraction between 0 and 1, both included.
    Optional<Double> fraction(String key);

    /// `true` or `false`; PyTorch's `True` and `False` too.
    Optional<Boolean> flag(String key);

    /// One of some words.
    Optional<String> choice(String key, List<String> words);

    /// One of the constants of a type, written as their `toString` has it.
    ///
    /// @throws io.cistern.errors.ConfigurationException if another word is given
    default <E extends Enum<E>> Optional<E> choice(String key, Class<E> type) {
        E[] constants = type.getEnumConstants();
        List<String> words = new ArrayList<>();
        for (E constant : constants) {
            words.add(constant.toString());
        }
        Optional<String> word = choice(key, words);
        return word.isEmpty() ? Optional.empty() : Optional.of(constants[words.indexOf(word.get())]);
    }

    /// A list: `[a,b]`, or one value alone.
    Optional<List<String>> list(String key);

    /// Options written inside the value of one key, as those of another program: `key="a:1,b:[2,3]"`. What of
    /// them is never asked for is an error like any other.
    Optional<AllocatorOptions> nested(String key);
}
