/// What tests of several modules share: Java programs in JVMs of their own, C compilers, logs.
package io.cistern.jvm;
