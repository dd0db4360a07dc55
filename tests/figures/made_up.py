"""Small tables of the shape that the pipeline makes, with made-up numbers, for tests of the figures."""

from xml.etree import ElementTree

import polars as pl

from fishpool.figures import files

HOSTILE = [
    "</script><script>alert(1)</script>",
    "datum['player']\\\"quoted\"${1+1}&amp;parent.x",
    "x" * 64,
]


def matchups(players, condition="plain", study="study", intervals=True):
    return pl.DataFrame(
        [
            {
                "study": study,
                "condition": condition,
                "player": player,
                "opponent": opponent,
                "matches": 8,
                "mean_score": 20.0 + 10 * i + 3 * j,
                "score_low": 19.0 + 10 * i + 3 * j if intervals else None,
                "score_high": 22.0 + 10 * i + 3 * j if intervals else None,
                "cooperation_rate": i / len(players),
                "mutual_cooperation_rate": 0.1,
            }
            for i, player in enumerate(players)
            for j, opponent in enumerate(players)
        ],
        schema_overrides={"score_low": pl.Float64, "score_high": pl.Float64},
    )


def ranking(players, condition="plain", study="study", intervals=True, strengths=True):
    return pl.DataFrame(
        [
            {
                "study": study,
                "condition": condition,
                "player": player,
                "matches": 8 * (len(players) - 1),
                "mean_score": 40.0 - i,
                "score_low": 38.5 - i if intervals else None,
                "score_high": 42.5 - i if intervals else None,
                "rank": i + 1,
                "rank_low": max(1, i) if intervals else None,
                "rank_high": i + 2 if intervals else None,
                "strength": 1.0 - i if strengths else None,
                "strength_low": 0.5 - i if strengths and intervals else None,
                "strength_high": 1.6 - i if strengths and intervals else None,
            }
            for i, player in enumerate(players)
        ],
        schema_overrides={
            **dict.fromkeys(["score_low", "score_high", "strength", "strength_low", "strength_high"], pl.Float64),
            **dict.fromkeys(["rank_low", "rank_high"], pl.Int64),
        },
    )


def rounds(players, condition="plain", study="study", intervals=True, last=4):
    return pl.DataFrame(
        [
            {
                "study": study,
                "condition": condition,
                "player": player,
                "round": number,
                "matches": 8,
                "cooperation_rate": 0.5,
                "low": 0.4 if intervals else None,
                "high": 0.7 if intervals else None,
            }
            for player in players
            for number in range(1, last + 1)
        ],
        schema_overrides={"low": pl.Float64, "high": pl.Float64},
    )


def profiles(players, condition="plain", study="study", intervals=True):
    return pl.DataFrame(
        [
            {
                "study": study,
                "condition": condition,
                "player": player,
                "state": state,
                "n": n,
                "cooperation_rate": 0.25 if n else None,
                "low": 0.1 if intervals and n > 1 else None,
                "high": 0.4 if intervals and n > 1 else None,
            }
            for player in players
            for state, n in {"opening": 8, "CC": 1234, "CD": 0, "DC": 17, "DD": 1}.items()
        ],
        schema_overrides={"low": pl.Float64, "high": pl.Float64},
    )


def shares(players, condition="plain", study="study", intervals=True):
    return pl.DataFrame(
        [
            {
                "study": study,
                "condition": condition,
                "player": player,
                "strategy": strategy,
                "share": 0.25,
                "low": 0.1 if intervals and identifiable else None,
                "high": 0.4 if intervals and identifiable else None,
                "identifiable": identifiable,
            }
            for player in players
            for strategy, identifiable in {"Stay": True, "Leave": True, "Either": False, "Or": False}.items()
        ],
        schema_overrides={"low": pl.Float64, "high": pl.Float64},
    )


def svg_of(chart):
    """The chart as an SVG file holds it."""
    return files._svg(files.specification_of(chart))


def texts(chart):
    """All text elements of a chart's SVG, as a reader would see them; lines of one name are joined."""
    svg = svg_of(chart)
    return [
        "".join(element.itertext()) for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    ]


def marks(chart, kind, field=None):
    """The rows behind each mark of a kind (of those that show `field`, if given) in a chart or its dictionary."""
    return [
        rows
        for mark, encoding, rows in _marks(chart if isinstance(chart, dict) else chart.to_dict())
        if mark["type"] == kind and (field is None or any(channel.get("field") == field for channel in encoding))
    ]


def _marks(spec):
    for key in ("layer", "hconcat", "vconcat", "spec"):
        parts = spec.get(key, [])
        for part in parts if isinstance(parts, list) else [parts]:
            yield from _marks({"datasets": spec["datasets"], "data": spec.get("data"), **part})
    if "mark" in spec:
        encoding = [channel for name, channel in spec["encoding"].items() if name != "tooltip"]
        yield spec["mark"], encoding, spec["datasets"][spec["data"]["name"]]
