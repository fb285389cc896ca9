"""How the console command takes answers: asked one by one, as words, or from a file."""
