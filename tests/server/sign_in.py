"""An authentication handler: the bearer token is the person's name."""

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
    """Let anybody in who says who they are."""
    if not authorization:
        raise Auth.exceptions.HTTPException(status_code=401, detail="who are you?")
    return {"identity": authorization.removeprefix("Bearer ")}
