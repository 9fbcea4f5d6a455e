/// For tests alone: Java programs in JVMs of their own ([io.cistern.jvm.JavaProgram]).
@org.jspecify.annotations.NullMarked
module io.cistern.jvm {
    requires static org.jspecify;

    exports io.cistern.jvm;
}
