package io.cistern.loader;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.MalformedURLException;
import java.net.URI;
import java.net.URL;
import java.net.URLConnection;
import java.net.URLStreamHandler;
import java.security.CodeSource;
import java.security.ProtectionDomain;
import java.security.cert.Certificate;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The class loader of one plug-in. It sees the plug-in's classes, those of Cistern and those of the JDK, and
/// no others. So plug-ins with clashing dependencies can run beside each other and beside the program, and each
/// behaves as it was tested.
///
/// It loads classes from the [images][PluginImage] of the plug-in's JARs, in order. If these are modules, this
/// is the loader of their layer ([PluginLayer]).
final class PluginClassLoader extends ClassLoader {
    static {
        registerAsParallelCapable();
    }

    private final List<PluginImage> images;

    PluginClassLoader(String name, List<PluginImage> images) {
        super("plug-in " + name, new CisternClasses());
        this.images = List.copyOf(images);
    }

    /// Returns the file in which a JAR can name its providers of a service.
    static String servicesFile(Class<?> service) {
        return "META-INF/services/" + service.getName();
    }

    boolean has(String entry) {
        return images.stream().anyMatch(image -> image.entries().containsKey(entry));
    }

    /// Returns whether any of the JARs may provide a service. A module declares it in its descriptor, which
    /// only the layer reads.
    boolean mayProvide(Class<?> service) {
        return has(servicesFile(service)) || has("module-info.class");
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        String entry = name.replace('.', '/') + ".class";
        for (PluginImage image : images) {
            byte[] bytes = image.entries().get(entry);
            if (bytes != null) {
                definePackage(name);
                return defineClass(name, bytes, 0, bytes.length, domain(image));
            }
        }
        throw new ClassNotFoundException(name);
    }

    private void definePackage(String className) {
        String packageName = className.substring(0, Math.max(0, className.lastIndexOf('.')));
        if (getDefinedPackage(packageName) == null) {
            try {
                definePackage(packageName, null, null, null, null, null, null, null);
            } catch (IllegalArgumentException e) {
                // Another thread defined it first.
            }
        }
    }

    @Override
    protected @Nullable Class<?> findClass(@Nullable String moduleName, String name) {
        try {
            return findClass(name);
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    @Override
    protected @Nullable URL findResource(@Nullable String moduleName, String name) {
        return findResource(name);
    }

    @Override
    protected @Nullable URL findResource(String name) {
        return images.stream()
                .flatMap(image -> url(image, name).stream())
                .findFirst()
                .orElse(null);
    }

    @Override
    protected Enumeration<URL> findResources(String name) {
        return Collections.enumeration(
                images.stream().flatMap(image -> url(image, name).stream()).toList());
    }

    private static Optional<URL> url(PluginImage image, String name) {
        return image.entry(name).map(bytes -> {
            try {
                URI place = new URI("jar", image.file().toUri() + "!/" + name, null);
                return URL.of(place, new FromMemory(bytes));
            } catch (java.net.URISyntaxException | MalformedURLException e) {
                throw new IllegalArgumentException(name, e);
            }
        });
    }

    private static ProtectionDomain domain(PluginImage image) {
        try {
            return new ProtectionDomain(
                    new CodeSource(image.file().toUri().toURL(), (Certificate[]) null), null, null, null);
        } catch (MalformedURLException e) {
            throw new IllegalStateException(e);
        }
    }

    /// Opens a connection to bytes that were read before, whatever has happened to the file since.
    private static final class FromMemory extends URLStreamHandler {
        private final byte[] bytes;

        FromMemory(byte[] bytes) {
            this.bytes = bytes;
        }

        @Override
        protected URLConnection openConnection(URL url) {
            return new URLConnection(url) {
                @Override
                public void connect() {}

                @Override
                public InputStream getInputStream() throws IOException {
                    return new ByteArrayInputStream(bytes);
                }

                @Override
                public long getContentLengthLong() {
                    return bytes.length;
                }
            };
        }
    }

    /// Loads the classes that plug-ins share with the program: those of Cistern and of the JDK.
    private static final class CisternClasses extends ClassLoader {
        static {
            registerAsParallelCapable();
        }

        private static final ClassLoader CISTERN = PluginClassLoader.class.getClassLoader();

        CisternClasses() {
            super("cistern for plug-ins", getPlatformClassLoader());
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (name.startsWith("io.cistern.")) {
                return CISTERN.loadClass(name);
            }
            throw new ClassNotFoundException(name);
        }
    }
}
