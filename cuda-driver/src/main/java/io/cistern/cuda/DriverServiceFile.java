package io.cistern.cuda;

import java.util.Map;

/// Explains why a driver's provider was not found: its JAR is missing, or a fat JAR has its class but has lost
/// its entry in `META-INF/services`.
final class DriverServiceFile {
    private static final Map<String, String> CLASS_NAMES = Map.of(
            "cuda", "io.cistern.cuda.ffm.NativeDriverProvider",
            "simulated", "io.cistern.simulated.SimulatedDriverProvider");

    private DriverServiceFile() {}

    /// Returns why no driver of that name was found, and what to do about it.
    static String notFound(String name) {
        String className = CLASS_NAMES.get(name);
        if (className == null) {
            return "there is no driver '" + name + "'; valid are auto, cuda, simulated and the names of other drivers"
                    + " on the class path";
        }
        if (!isHere(className)) {
            return "there is no driver '" + name + "': add "
                    + (name.equals("cuda") ? "cistern-cuda-driver" : "cistern-simulated-gpu")
                    + " to the class path or module path";
        }
        return "the class of the driver '" + name + "' is here, but " + "META-INF/services/"
                + CudaDriverProvider.class.getName() + " does not name " + className
                + ". In a fat JAR the files in META-INF/services must be merged: with ServicesResourceTransformer in"
                + " Maven's shade plug-in, with mergeServiceFiles() in Gradle's shadow plug-in";
    }

    private static boolean isHere(String className) {
        try {
            Class.forName(className, false, DriverServiceFile.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException | LinkageError e) {
            return false;
        }
    }
}
