package io.cistern.cuda.library;

import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/// A shared library that is found at run time, and its functions. A loaded library is never unloaded.
///
/// This module loads and calls libraries, so a module that binds one needs no native access of its own.
///
/// **Threads.** Any.
public final class SharedLibrary {
    /// Longer than any text that a library returns.
    private static final long MAX_TEXT_BYTES = 1 << 16;

    private final String product;
    private final String name;
    private final SymbolLookup symbols;

    private SharedLibrary(String product, String name, SymbolLookup symbols) {
        this.product = product;
        this.name = name;
        this.symbols = symbols;
    }

    /// Loads the library that a setting names, or else the first of several names that the system's loader
    /// finds.
    ///
    /// @param product the product that the library belongs to, for messages, for example `NCCL`
    /// @param setting may name a file, or a folder that contains a file of one of the names
    /// @param names names of the library, in the order of preference
    /// @throws UnsupportedOperationException if none is found or native access is denied; the message says what
    ///     to do
    public static SharedLibrary find(String product, Setting setting, String... names) {
        return Settings.ofProcess()
                .get(setting)
                .map(set -> load(product, setting, set.text(), names))
                .orElseGet(() -> first(product, setting, List.of(names)));
    }

    /// Loads a library by its name or its path.
    ///
    /// @param place a file, or a folder that contains a file of one of the names
    /// @throws UnsupportedOperationException if none is found or native access is denied; the message says what
    ///     to do
    public static SharedLibrary load(String product, Setting setting, String place, String... names) {
        boolean folder = place.contains("/") && Files.isDirectory(Path.of(place));
        List<String> candidates = folder
                ? Stream.of(names).map(name -> Path.of(place, name).toString()).toList()
                : List.of(place);
        return first(product, setting, candidates);
    }

    private static SharedLibrary first(String product, Setting setting, List<String> candidates) {
        for (String name : candidates) {
            try {
                return new SharedLibrary(product, name, NativeCode.library(name));
            } catch (IllegalCallerException denied) {
                throw new UnsupportedOperationException(NativeCode.denied(), denied);
            } catch (IllegalArgumentException absent) {
                // Try the next candidate.
            }
        }
        throw new UnsupportedOperationException(product + " can't be loaded: tried " + String.join(", ", candidates)
                + "; install " + product + ", or give the path of its file or folder by the setting "
                + setting.key());
    }

    /// Returns the name or path by which the library was found.
    public String name() {
        return name;
    }

    /// Returns the address of an optional function.
    ///
    /// @return the address, or [MemorySegment#NULL] if the library has no such function
    public MemorySegment address(String function) {
        return symbols.find(function).orElse(MemorySegment.NULL);
    }

    /// Returns the address of a required function.
    ///
    /// @throws UnsupportedOperationException if the library has no such function
    public MemorySegment require(String function) {
        return symbols.find(function)
                .orElseThrow(() -> new UnsupportedOperationException(
                        name + " has no symbol " + function + ": it is not " + product + ", or is another version"));
    }

    /// Returns a required function, ready to be called.
    ///
    /// @throws UnsupportedOperationException if the library has no such function
    @SuppressWarnings("restricted")
    public MethodHandle function(String function, FunctionDescriptor shape) {
        return Linker.nativeLinker().downcallHandle(require(function), shape);
    }

    /// Returns a handle that calls any function of one shape; its first argument is the function's address. If
    /// the handle is a constant, the JIT compiler inlines it, whichever library is loaded.
    @SuppressWarnings("restricted")
    public static MethodHandle call(FunctionDescriptor shape) {
        return Linker.nativeLinker().downcallHandle(shape);
    }

    /// Returns the text at an address; empty for address 0.
    @SuppressWarnings("restricted")
    public static String text(MemorySegment address) {
        return address.address() == 0 ? "" : address.reinterpret(MAX_TEXT_BYTES).getString(0);
    }
}
