"""What leaves the window: figures, tables, run files, command lines; asking for them and writing them."""
