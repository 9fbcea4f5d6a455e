package io.cistern.loader;

import io.cistern.spi.AllocatorProvider;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.module.Configuration;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReader;
import java.lang.module.ModuleReference;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/// Defines the module layer of a plug-in, on top of the program's layer. A plug-in gets one if all its JARs are
/// modules and Cistern itself runs as modules. All other plug-ins live in the unnamed module of their class
/// loader.
final class PluginLayer {
    private static final String DESCRIPTOR = "module-info.class";

    private PluginLayer() {}

    /// Defines a loader's classes in modules, if its JARs and Cistern are modules.
    ///
    /// @throws java.lang.module.FindException if a required module is missing
    /// @throws java.lang.module.ResolutionException if the modules don't fit together
    static void define(PluginClassLoader loader, List<PluginImage> images) {
        ModuleLayer program = AllocatorProvider.class.getModule().getLayer();
        if (program == null
                || images.isEmpty()
                || !images.stream().allMatch(image -> image.entries().containsKey(DESCRIPTOR))) {
            return;
        }
        ImageFinder finder = new ImageFinder(images);
        Configuration modules = program.configuration().resolve(finder, ModuleFinder.of(), finder.byName.keySet());
        ModuleLayer.defineModules(modules, List.of(program), _ -> loader);
    }

    private static final class ImageFinder implements ModuleFinder {
        final Map<String, ModuleReference> byName = new HashMap<>();

        ImageFinder(List<PluginImage> images) {
            for (PluginImage image : images) {
                ModuleReference reference = new ImageReference(image);
                byName.put(reference.descriptor().name(), reference);
            }
        }

        @Override
        public Optional<ModuleReference> find(String name) {
            return Optional.ofNullable(byName.get(name));
        }

        @Override
        public Set<ModuleReference> findAll() {
            return Set.copyOf(byName.values());
        }
    }

    private static final class ImageReference extends ModuleReference {
        ImageReference(PluginImage image) {
            super(descriptor(image), image.file().toUri());
        }

        private static ModuleDescriptor descriptor(PluginImage image) {
            try {
                return ModuleDescriptor.read(
                        new ByteArrayInputStream(image.entry(DESCRIPTOR).orElseThrow()), () -> packages(image));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        private static Set<String> packages(PluginImage image) {
            return image.entries().keySet().stream()
                    .filter(name -> name.endsWith(".class") && name.contains("/") && !name.startsWith("META-INF/"))
                    .map(name -> name.substring(0, name.lastIndexOf('/')).replace('/', '.'))
                    .collect(Collectors.toSet());
        }

        /// Never called, because the class loader has the images.
        @Override
        public ModuleReader open() {
            throw new UnsupportedOperationException("read by its class loader");
        }
    }
}
