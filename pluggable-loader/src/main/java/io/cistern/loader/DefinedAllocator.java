package io.cistern.loader;

import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog.Kind;
import io.cistern.spi.options.AllocatorSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// An allocator whose name stands for a spec. The setting `cistern.define.NAME` defines it, or a library in the
/// plug-in directory does.
///
/// @param name the name
/// @param spec the spec that it stands for
/// @param setting the source of the setting that defines it, for messages; null for a library
record DefinedAllocator(
        String name, AllocatorSpec spec, @Nullable String setting) implements AllocatorProvider {
    /// Returns the allocators that settings and the libraries of the plug-in directory define.
    static List<DiscoveredProvider<AllocatorProvider>> of(Settings settings, List<PluginDirectory.Library> libraries) {
        List<DiscoveredProvider<AllocatorProvider>> found = new ArrayList<>();
        for (Settings.Value set : settings.all()) {
            if (set.setting() == Setting.DEFINE) {
                found.add(defined(set.part(), set.text(), set.source(), set.source()));
            }
        }
        for (PluginDirectory.Library library : libraries) {
            String spec = "library:path=\"" + quoted(library.file().toString()) + "\",sha256=" + library.digest();
            found.add(defined(library.name(), spec, Digest.origin(library.file().toString(), library.digest()), null));
        }
        return found;
    }

    private static String quoted(String text) {
        return text.replace("\\", "\\\\").replace("\"", "\\\"");
    }

    private static DiscoveredProvider<AllocatorProvider> defined(
            String name, String spec, String origin, @Nullable String setting) {
        String className = DefinedAllocator.class.getName();
        try {
            AllocatorProvider provider = new DefinedAllocator(name, AllocatorSpec.parse(spec), setting);
            return DiscoveredProvider.sound(Service.ALLOCATORS, className, origin, name, 0, provider);
        } catch (ConfigurationException e) {
            return DiscoveredProvider.broken(
                    Kind.ALLOCATOR, className, origin, Optional.of(name), 0, String.valueOf(e.getMessage()));
        }
    }

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        try {
            return new AllocatorAdaptor(context.upstream(spec.text())) {}; // the framework closes the upstream
        } catch (ConfigurationException e) {
            throw setting == null ? e : new ConfigurationException(setting + ": " + e.getMessage(), e);
        }
    }
}
