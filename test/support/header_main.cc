// Only there to have test/support's precompiled header made.
int main() { return 0; }
