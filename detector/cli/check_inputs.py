"""Options that say what is to be checked, shared by `check config` and `checklist`."""

from typing import Annotated

import typer

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILES...]",
        help="Manifests, output of helm template, compose files, commands; - is standard input.",
        show_default=False,
    ),
]

Kind = Annotated[
    str | None, typer.Option("--engine", metavar="NAME", help="What --args are for: sglang, vllm.")
]

Lines = Annotated[
    list[str] | None,
    typer.Option(
        "--args",
        metavar="LINE",
        help="The flags or the command of one engine, in quotes; repeatable.",
    ),
]

Urls = Annotated[
    list[str] | None,
    typer.Option(
        "--url", metavar="URL", help="A running engine, such as http://host:30000; repeatable."
    ),
]

Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model-config",
        metavar="[MODEL=]FILE",
        help="The model's config.json; with its name where several are served.",
    ),
]

Version = Annotated[
    str | None,
    typer.Option("--version", metavar="VERSION", help="The engine's, where no image tells it."),
]

MeanTokens = Annotated[
    int | None,
    typer.Option(
        "--mean-tokens", metavar="N", min=1, help="Mean tokens of a request, its answer included."
    ),
]

Vouch = Annotated[
    list[str] | None,
    typer.Option(
        "--vouch", metavar="WORD", help="State what no file tells, such as salts; repeatable."
    ),
]

TokenFile = Annotated[
    str | None,
    typer.Option("--token-file", metavar="FILE", help="The engines' API key, for --url."),
]

CaFile = Annotated[
    str | None,
    typer.Option("--ca-file", metavar="FILE", help="Authorities to trust, for --url [PEM]."),
]
