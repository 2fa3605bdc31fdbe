//! A gate as an MCP server.
