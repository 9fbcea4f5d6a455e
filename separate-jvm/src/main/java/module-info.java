/// For tests alone: Java programs in JVMs of their own ([io.cistern.jvm.JavaProgram]), and native code of tests
/// ([io.cistern.jvm.CCompiler]).
@org.jspecify.annotations.NullMarked
module io.cistern.jvm {
    requires static org.jspecify;

    exports io.cistern.jvm;
}
