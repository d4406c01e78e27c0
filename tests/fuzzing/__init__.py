"""Real model files, damaged in many ways: each is refused in words, or runs and says what other runtimes say."""
