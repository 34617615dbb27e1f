// Exists so that test/support's precompiled header is made.
int main() { return 0; }
