package io.cistern.cuda.settings;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// All settings that can be set from outside a program. `docs/settings.md` is generated from this list.
///
/// A key may have one part that the user chooses: [#DEVICE_PART], a device's ordinal, or [#NAME_PART], a name.
/// As an environment variable, a key is in capitals, with `_` for `.`.
public enum Setting {
    CONFIG("cistern.config", "a path", "no file", "a file of other settings, in UTF-8"),
    ALLOCATOR(
            "cistern.allocator",
            "the spec of an allocator",
            "the available one of highest priority",
            "the current allocator if the program does not choose one"),
    DEVICE_ALLOCATOR(
            "cistern.device.N.allocator", "the spec of an allocator", "`cistern.allocator`", "the same for device N"),
    LIMIT(
            "cistern.limit",
            "a number of bytes from 1, a share of the device, or `none`",
            "none",
            "the maximum live bytes on each device"),
    DEVICE_LIMIT(
            "cistern.device.N.limit",
            "a number of bytes from 1, a share of the device, or `none`",
            "`cistern.limit`",
            "the same for device N"),
    DEFINE("cistern.define.NAME", "the spec of an allocator", "none", "a name for a spec"),
    PLUGINS("cistern.plugins", "a path", "none", "a directory of plug-ins; only you or root may write there"),
    PLUGINS_ALLOWED(
            "cistern.plugins.allowed",
            "a path",
            "all plug-ins",
            "a file of digests by `sha256sum`; other plug-ins are refused"),
    LEAKS("cistern.leaks", "`off`, `sampled`, `sites`, `all`", "`off`", "how much is recorded about live blocks"),
    CHECK(
            "cistern.check",
            "`off`, `checked`, `paranoid`, `streams`",
            "`off`",
            "how much `caching` checks; `streams` instead finds races, with every allocator"),
    HAZARDS(
            "cistern.hazards",
            "`warning`, `throw`, `list`",
            "`warning`",
            "the reaction to a race: a warning, an exception, or only an entry in `StreamHazards.list()`"),
    OBSERVE(
            "cistern.observe",
            "names of observers, such as `jfr,jmx`",
            "none",
            "`history`, `snapshots`, `jfr`, `jmx`, `nvtx`, and your own (`ModuleSupport.Observer`)"),
    SCOPES_REPORT("cistern.scopes.report", "`true`, `false`", "`false`", "whether to report mistakes with scopes"),
    COPIES_REPORT(
            "cistern.copies.report",
            "`true`, `false`",
            "`false`",
            "whether to report non-blocking copies of unpinned memory"),
    COPIES_DIRECT(
            "cistern.copies.direct",
            "`true`, `false`",
            "`false`",
            "whether the driver reads arrays of less than 8 MiB in place, which is faster; not if a GPU"
                    + " waits for Java code (docs/buffers.md)"),
    DRIVER(
            "cistern.driver",
            "`auto`, or the name of a driver: `cuda`, `simulated`",
            "`auto`",
            "`auto`: the real GPU's if it works, else the simulated GPU's, with a warning"),
    CUDA_LIBRARY("cistern.cuda.library", "a name or a path", "`libcuda.so.1`", "the CUDA driver's library"),
    NVRTC_LIBRARY(
            "cistern.nvrtc.library",
            "a name, a file or its folder",
            "`libnvrtc.so`, else that of version 13, 12 or 11",
            "NVIDIA's run-time compiler"),
    NCCL_LIBRARY("cistern.nccl.library", "a name, a file or its folder", "`libnccl.so.2`", "NCCL's library"),
    ONNXRUNTIME_LIBRARY(
            "cistern.onnxruntime.library",
            "a name, a file or its folder",
            "the loaded `libonnxruntime.so.1`",
            "ONNX Runtime's library"),
    NVTX_LIBRARY(
            "cistern.nvtx.library",
            "a name, a file or its folder",
            "`libnvToolsExt.so.1`, else `libnvtx3interop.so.1`",
            "NVTX, for NVIDIA's profilers"),
    SIMULATED_DEVICES("cistern.simulated.devices", "a number from 1 to 999", "1", "the number of simulated devices"),
    SIMULATED_CAPACITY(
            "cistern.simulated.capacity",
            "a number of bytes from 1 to 8TiB",
            "that of an H200",
            "the memory of each simulated device");

    /// The most devices that [#SIMULATED_DEVICES] may ask for.
    public static final int MAX_SIMULATED_DEVICES = 999;

    /// The most bytes that [#SIMULATED_CAPACITY] may ask for: 8 TiB.
    public static final long MAX_SIMULATED_BYTES = 8L << 40;

    /// Stands in a key for a device's ordinal.
    static final String DEVICE_PART = "N";

    /// Stands in a key for a name.
    static final String NAME_PART = "NAME";

    private static final String DEVICE_FORM = "0|[1-9][0-9]{0,3}";
    private static final String NAME_FORM = "[a-z0-9][a-z0-9_-]*";

    private final String key;
    private final String legal;
    private final String otherwise;
    private final String meaning;

    Setting(String key, String legal, String otherwise, String meaning) {
        this.key = key;
        this.legal = legal;
        this.otherwise = otherwise;
        this.meaning = meaning;
    }

    /// Returns the key, as written in a property and in the file.
    public String key() {
        return key;
    }

    /// Returns a human-readable description of the legal values.
    public String legal() {
        return legal;
    }

    /// Returns a human-readable description of what applies if the setting is missing.
    public String otherwise() {
        return otherwise;
    }

    /// Returns a human-readable description of the setting.
    public String meaning() {
        return meaning;
    }

    /// Returns whether the key has a part that the user chooses.
    public boolean isFamily() {
        return key.contains("." + DEVICE_PART + ".") || key.endsWith("." + NAME_PART);
    }

    /// Returns whether the chosen part of the key is a device's ordinal.
    public boolean isOfDevice() {
        return isFamily() && chosenPart().equals(DEVICE_PART);
    }

    /// Returns the key as an environment variable.
    public String variable() {
        return variable(key);
    }

    /// Returns the key with its chosen part.
    String keyOf(Object part) {
        if (!isFamily()) {
            throw new IllegalArgumentException(key + " has no variable part");
        }
        return prefix() + part + suffix();
    }

    private String prefix() {
        return key.substring(0, key.indexOf(chosenPart()));
    }

    private String suffix() {
        return key.substring(key.indexOf(chosenPart()) + chosenPart().length());
    }

    private String chosenPart() {
        return key.endsWith("." + NAME_PART) ? NAME_PART : DEVICE_PART;
    }

    /// Returns the chosen part of a written key of this setting.
    ///
    /// @return the part; empty if this setting has none; null if the key is of another setting
    @Nullable
    String partOf(String written) {
        if (!isFamily()) {
            return written.equals(key) ? "" : null;
        }
        if (!written.startsWith(prefix())
                || !written.endsWith(suffix())
                || written.length() <= prefix().length() + suffix().length()) {
            return null;
        }
        String part = written.substring(prefix().length(), written.length() - suffix().length());
        return part.matches(chosenPart().equals(DEVICE_PART) ? DEVICE_FORM : NAME_FORM) ? part : null;
    }

    /// Returns a key as an environment variable.
    static String variable(String key) {
        return key.toUpperCase(Locale.ROOT).replace('.', '_').replace('-', '_');
    }
}
