"""One exchange scheme per file."""
