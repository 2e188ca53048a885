"""One suite a port: inherit a class, give its fixtures, and every promise is tested on your backend."""
