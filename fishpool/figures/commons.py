"""What the figures of the fish pool, RQ1 to RQ8, share: the titles of their panels.

It decides no colours and sizes (`style` does) and draws no question.
"""

from __future__ import annotations

import altair as alt

from fishpool.figures import style


def heading(text: str) -> alt.TitleParams:
    """The title of a panel, or of a row of panels, above its left end."""
    return alt.TitleParams(text, anchor="start", fontSize=style.BODY, fontWeight="bold", offset=5)
