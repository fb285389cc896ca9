"""Draw a picture: prompt, model, seed and MIME type are params. Chat: say what to draw.

The scripted model `imagen-3.0` has no capacity left; `imagen-4.0` draws SVG whatever MIME type was
asked for; `imagen-4.0-ultra` draws both. So an approval leads to a picture that is refused for its
type, and a person chooses: another type, or another model.
"""

import base64
import hashlib
import struct
import zlib
from typing import Any, Literal

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, Field, model_validator

from graph_retry import AttemptFailed, create_retry_node
from nodes.serving import Messages, around, chat_model, is_real

MimeType = Literal["image/png", "image/svg+xml"]


class ImageParams(BaseModel):
    """All params of the picture that a person might want to change."""

    prompt: str = Field(
        default="a lighthouse at dusk", description="What to draw; a chat message takes its place"
    )
    model: str = Field(
        default="imagen-3.0",
        description=(
            "`imagen-3.0`, `imagen-4.0` or `imagen-4.0-ultra` (scripted), or a real chat model "
            "such as `openai:gpt-4.1-mini`, which is asked for SVG"
        ),
    )
    seed: int = Field(default=12345, ge=0, description="The same seed draws the same picture")
    output_mime_type: MimeType = Field(
        default="image/png", description="The type the picture must have"
    )


class Image(BaseModel):
    """The output of the call. The data must have the declared type."""

    mime_type: MimeType
    data: str = Field(description="The picture in base64")

    @model_validator(mode="after")
    def _is_what_it_says(self) -> "Image":
        if (found := sniffed(base64.b64decode(self.data, validate=True))) != self.mime_type:
            msg = f"{self.mime_type} was asked for, and the data is {found}"
            raise ValueError(msg)
        return self


class Input(Messages, total=False):
    """A message with the prompt, or params, or both."""

    params: ImageParams


class ResourceExhaustedError(RuntimeError):
    """The error of a provider whose model has no capacity left."""

    status_code = 429


def sniffed(data: bytes) -> str:
    """Tell the type of a picture from its first bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    return "image/svg+xml" if data.lstrip().startswith(b"<svg") else "no picture"


def draw_svg(colours: bytes) -> bytes:
    """Draw a disc before a background."""
    first, second = colours[:3].hex(), colours[3:6].hex()
    shapes = f'<rect width="32" height="32" fill="#{first}"/><circle cx="16" cy="16" r="9"'
    size = 'width="32" height="32"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{shapes} fill="#{second}"/></svg>'.encode()
    )


def draw_png(colours: bytes) -> bytes:
    """Draw the same as 32 x 32 pixels of 24 bits."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        framed = kind + data
        return struct.pack(">I", len(data)) + framed + struct.pack(">I", zlib.crc32(framed))

    def row(y: int) -> bytes:
        inside = [(x - 15.5) ** 2 + (y - 15.5) ** 2 < 81 for x in range(32)]
        return b"\0" + b"".join(colours[3:6] if each else colours[:3] for each in inside)

    header = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(row(y) for y in range(32)))
    parts = chunk(b"IHDR", header), chunk(b"IDAT", pixels), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def draw(params: ImageParams) -> bytes:
    """Draw like an image model would. The picture depends only on the params."""
    if params.model == "imagen-3.0":
        msg = "429 Resource exhausted: imagen-3.0 has no capacity left"
        raise ResourceExhaustedError(msg)
    if params.model not in ("imagen-4.0", "imagen-4.0-ultra"):
        msg = f"unknown model {params.model!r}: use 'imagen-4.0' or 'imagen-4.0-ultra'"
        raise ValueError(msg)
    colours = hashlib.sha256(f"{params.seed} {params.prompt}".encode()).digest()
    as_png = params.model == "imagen-4.0-ultra" and params.output_mime_type == "image/png"
    return draw_png(colours) if as_png else draw_svg(colours)


def generate(params: ImageParams) -> dict[str, str]:
    """Ask the scripted model, or a real model if the name contains a provider."""
    if is_real(params.model):
        wanted = f"Answer with one SVG document and nothing else. Seed: {params.seed}."
        said: BaseMessage = chat_model(params.model).invoke(f"Draw {params.prompt}. {wanted}")
        text = str(said.text)
        data = text[max(text.find("<svg"), 0) : text.rfind("</svg>") + len("</svg>")].encode()
    else:
        data = draw(params)
    return {"mime_type": params.output_mime_type, "data": base64.b64encode(data).decode()}


def revise(error: AttemptFailed, attempt: int, params: ImageParams) -> ImageParams | None:
    """Propose a newer model if the model has no capacity, and SVG if the model draws only SVG."""
    del attempt
    if "Resource exhausted" in str(error):
        return params.model_copy(update={"model": "imagen-4.0"})
    if "the data is image/svg+xml" in str(error):
        return params.model_copy(update={"output_mime_type": "image/svg+xml"})
    return None


def tell(output: dict[str, str]) -> list[dict[str, Any]]:
    """Show the picture in the chat."""
    told = f"{output['mime_type']}, {len(base64.b64decode(output['data']))} bytes"
    picture = {"type": "image", "mime_type": output["mime_type"], "base64": output["data"]}
    return [{"type": "text", "text": told}, picture]


node = create_retry_node(generate, ImageParams, revise, output=Image, name="image")
graph = around(
    "image",
    node,
    Input,
    lambda params, messages: params.model_copy(update={"prompt": messages[-1].text}),
    tell,
).compile()
