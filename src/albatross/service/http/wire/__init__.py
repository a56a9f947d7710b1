"""HTTP on the wire: connections, parsing, and limits on time and memory."""
