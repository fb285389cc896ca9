"""A server of the Model Context Protocol with one tool, which is run over stdio."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("projects", log_level="ERROR")


@server.tool()
def search(project: str) -> str:
    """Search the runs of a project."""
    if project != "demo":
        raise ValueError(f"there is no project {project}")
    return "3 runs"


if __name__ == "__main__":
    server.run()
