"""MariaDB and MySQL as stores."""
