"""Hatchling's hook for the metadata: the project's addresses, and a README whose links work on a package index.

In the repository the README links to files beside it. On a package index there are no such files, so that links become
addresses of the same files in the repository, in the state of the release.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURES = (".gif", ".jpg", ".jpeg", ".png", ".svg", ".webp")

# What is no place in the repository: an address with a scheme, and a place on the page itself.
_RELATIVE = r"(?![a-z][a-z0-9+.-]*:|//|#)"
_LINKS = re.compile(
    rf"(?P<before>\]\(|^\[[^\]]+\]:[ ]+|\b(?:src|srcset|href)=\")(?P<place>{_RELATIVE}[^)\s\"]+)",
    re.IGNORECASE | re.MULTILINE,
)
_FENCED = re.compile(r"^(```.*?^```[ ]*$)", re.DOTALL | re.MULTILINE)


def absolute_links(text: str, repository: str, tag: str) -> str:
    """Markdown whose links and pictures lead to the repository wherever they are.

    Parameters
    ----------
    text : str
        The page, with links relative to the top of the repository.
    repository : str
        The repository's address, without a slash at its end.
    tag : str
        The tag of the release.

    Returns
    -------
    text : str
        The page; blocks of code are left as they are.
    """

    def lead(found: re.Match[str]) -> str:
        place = found["place"].removeprefix("./")
        shown = "raw" if place.partition("#")[0].lower().endswith(PICTURES) else "blob"
        return f"{found['before']}{repository}/{shown}/{tag}/{place}"

    parts = _FENCED.split(text)  # prose and blocks of code take turns
    return "".join(part if number % 2 else _LINKS.sub(lead, part) for number, part in enumerate(parts))


class RepositoryHook(MetadataHookInterface):
    """Fill in what depends on the repository's address."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        repository = self.config["repository"].rstrip("/")
        tag = f"v{metadata['version']}"
        metadata["urls"] = {
            "Documentation": f"{repository}/blob/{tag}/docs/index.md",
            "Source": repository,
            "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute_links(text, repository, tag)}
