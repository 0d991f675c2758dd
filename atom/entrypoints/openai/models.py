"""/v1/models: the names under which the model is served."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
from atom_spec.openai import Model, ModelList
from starlette.requests import Request
from starlette.responses import Response

from atom.entrypoints.openai.endpoint import Handler
from atom.entrypoints.openai.errors import model_not_found

if TYPE_CHECKING:
    from atom.entrypoints.openai.serving import ServingContext

_STARTED = int(time.time())


async def list_models(serving: ServingContext, call: Request, body: None) -> Response:
    """All served names."""
    listed = ModelList(data=[_model(serving, name) for name in serving.served_model_names])
    return Response(msgspec.json.encode(listed), media_type="application/json")


async def retrieve_model(serving: ServingContext, call: Request, body: None) -> Response:
    """One served name."""
    name = call.path_params["model"]
    if name not in serving.served_model_names:
        raise model_not_found(name, serving.served_model_names)
    return Response(msgspec.json.encode(_model(serving, name)), media_type="application/json")


def _model(serving: ServingContext, name: str) -> Model:
    return Model(id=name, created=_STARTED, owned_by="atom", max_model_len=serving.max_model_len)


HANDLERS: dict[str, Handler] = {"listModels": list_models, "retrieveModel": retrieve_model}
