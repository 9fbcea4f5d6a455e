module com.example.outside {
    requires io.cistern;
}
