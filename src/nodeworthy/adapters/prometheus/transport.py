"""One HTTP exchange with a metrics server, and what may go wrong on the way, in our words."""

from __future__ import annotations

from typing import Any

import httpx

from nodeworthy.errors import Garbled, TimedOut, Unreachable


async def fetch(client: httpx.AsyncClient, answer_bytes: int, **request: Any) -> tuple[int, bytes]:
    """Status and body of one answer. `request` is what httpx is asked to send. Raises TimedOut (nothing for as long
    as the client's limit), Garbled (it broke off, or is larger than `answer_bytes`) or Unreachable."""
    received = bytearray()
    try:
        async with client.stream(**request) as response:
            async for chunk in response.aiter_bytes():
                received += chunk
                if len(received) > answer_bytes:
                    raise Garbled(f"the answer is larger than {answer_bytes} bytes")
            return response.status_code, bytes(received)
    except httpx.TimeoutException as error:
        raise TimedOut(f"no answer within {client.timeout.read:g} s") from error
    except (httpx.RemoteProtocolError, httpx.DecodingError) as error:
        raise Garbled(f"the answer broke off after {len(received)} bytes") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unreachable(f"{request['url']} cannot be reached: {str(error) or type(error).__name__}") from error
