"""A replay as text for a terminal: round by round what each agent saw, said and did, and what the referee made of it.

It reads no table (that is `fishpool.replay`) and judges nothing. What anybody wrote stands behind a line on the left,
whole and with every character visible, so that it cannot pass for the words of this module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fishpool.replay import Claim, Phase, Replay, Reply, Round, Turn
from fishpool.screen import Screen, visible, wrapped

_BAR = 24  # columns


def transcript(replay: Replay, screen: Screen, prompts: bool = False) -> Iterator[str]:
    """The lines of a run; `prompts` shows whole requests, not just what is new to an agent since it was last asked."""
    yield from _head(replay, screen)
    known: dict[str, set[str]] = {}  # by agent, the lines that it has been shown
    for played in replay.rounds:
        yield ""
        yield _round(played, replay.run["parameters"], screen)
        for phase in played.phases:
            yield from _phase(phase, screen, prompts, known)


def _head(replay: Replay, screen: Screen) -> Iterator[str]:
    run = replay.run
    yield screen.paint(visible(replay.run_id), "bold")
    rounds = f"{run['rounds']} round{'' if run['rounds'] == 1 else 's'}"
    winner = f"; {run['winner']} wins" if run["winner"] else ""
    yield from _indented(f"{run['game']}: {run['ending']} after {rounds}{winner}", screen, 2)
    if run["end_reason"] != run["ending"]:
        yield from _indented(run["end_reason"], screen, 2)
    lies = [lie.kind for turn in replay.turns for lie in turn.lies]
    if lies:
        counted = f"{lies.count('report')} in reports, {lies.count('promise')} in promises"
        yield from _indented(f"lies, each marked LIE where it was told: {counted}", screen, 2, "red")
    width = max(map(len, run["agents"]), default=0)
    for agent, player in run["agents"].items():
        outside = run["outsiders"].get(player)
        about = f"  {json.dumps(outside, ensure_ascii=False)}" if outside else ""
        yield from _indented(f"{agent.ljust(width)}  {player}{about}", screen, 2)
    parameters = ", ".join(f"{name} {_value(value)}" for name, value in run["parameters"].items())
    yield from _indented(f"parameters: {parameters}", screen, 2, "dim")


def _round(played: Round, parameters: Mapping[str, Any], screen: Screen) -> str:
    title = screen.paint(f"Round {played.number}", "bold")
    if played.stock is None or played.remaining is None:
        return title
    full = max(parameters.get("capacity") or 0, played.stock, 1)
    left, stock = (_share(amount, full) for amount in (played.remaining, played.stock))
    kept, taken, empty = "█▒░" if screen.unicode else "#+."
    bar = kept * left + taken * (stock - left) + empty * (_BAR - stock)
    return f"{title}  {bar}  {played.stock} tons, {played.stock - played.remaining} caught, {played.remaining} left"


def _share(amount: int, full: int) -> int:
    """Columns of the bar; what is there at all has one."""
    return max(round(_BAR * amount / full), int(amount > 0))


def _phase(phase: Phase, screen: Screen, prompts: bool, known: dict[str, set[str]]) -> Iterator[str]:
    yield f"  {visible(phase.name)}"
    width = max(len(turn.agent) for turn in phase.turns)
    for turn in phase.turns:
        did = _DID.get(phase.name, _values)(turn)
        yield from _indented(f"{turn.agent.ljust(width)}  {did}{_by(turn)}", screen, 4)
        for lie in turn.lies:
            yield from _indented(_lie(lie), screen, 6, "red")
        if turn.message:
            yield from _indented("said to all:", screen, 6)
            yield from _quoted(turn.message, screen)
        reasoning = turn.values.get("reasoning")
        if reasoning and not turn.replies:
            yield from _indented("because:", screen, 6)
            yield from _quoted(reasoning, screen)
        for reply in turn.replies:
            yield from _reply(reply, screen, prompts, known.setdefault(turn.agent, set()))
        if turn.status != "moved":
            yield from _indented(_verdict(turn), screen, 6, "yellow")


def _reply(reply: Reply, screen: Screen, prompts: bool, known: set[str]) -> Iterator[str]:
    asked = f"prompt {reply.prompt_sha256[:12]}"
    if prompts:
        for role, content in reply.messages:
            yield from _indented(f"was shown as {role} ({asked}):", screen, 6)
            yield from _quoted(content, screen, "dim")
    else:
        lines = reply.messages[-1][1].split("\n") if reply.messages else []
        new = [line for line in lines if line.strip() and line not in known]
        known.update(lines)
        if new:
            yield from _indented(f"was shown anew ({asked}; --prompts shows all):", screen, 6)
            yield from _quoted("\n".join(new), screen, "dim")
    if reply.thinking:
        yield from _indented("thought:", screen, 6)
        yield from _quoted(reply.thinking, screen)
    tokens = "" if reply.tokens_out is None else f", {reply.tokens_out:,} tokens"
    replicate = f", replicate {reply.replicate}" if reply.replicate > 1 else ""
    source = ", from the journal" if reply.from_journal else ""
    about = f"{reply.finish_reason}{tokens}, {reply.latency_ms:,.0f} ms{replicate}{source}"
    yield from _indented(f"reply {reply.attempt} of {reply.model} ({about}):", screen, 6)
    yield from _quoted(reply.text, screen)
    if reply.reading != "moved":
        yield from _indented(f"read as {reply.reading}{': ' if reply.fault else ''}{reply.fault}", screen, 6, "yellow")


def _lie(claim: Claim) -> str:
    if claim.kind == "promise":
        return f"LIE: promised {claim.claimed}, asked for {claim.actual}"
    return f"LIE: said {claim.claimed}, caught {claim.actual}"


def _verdict(turn: Turn) -> str:
    asked = f", asked {turn.attempts} times" if turn.attempts > 1 else ""
    why = f" ({turn.fault})" if turn.fault and turn.status != "repaired" else ""
    return f"the referee: {turn.status}{asked}{why}"


def _by(turn: Turn) -> str:
    return " (by the rules, not by the agent)" if turn.fallback else ""


# ── What was done, in words, by phase ────────────────────────────────────────────────────────────────────────────


def _pledge(turn: Turn) -> str:
    promise, intention = turn.values.get("promise"), turn.values.get("intention")
    said = "promises nothing" if promise is None else f"promises {promise}"
    return said if intention is None else f"{said}, means to take {intention}"


def _catch(turn: Turn) -> str:
    values = turn.values
    if "catch" not in values:
        return _values(turn)
    departed = values.get("deviation")
    changes = f"; {departed}: {values['du']:+g} for itself, {values['dw']:+g} for all" if departed else ""
    return f"asks for {values.get('demand')}, catches {values['catch']}{changes}"


def _report(turn: Turn) -> str:
    values = turn.values
    said = "reports nothing" if values.get("report") is None else f"reports {values['report']}"
    audited = ", is audited" if values.get("audited") else ""
    fine = f", pays {values['fine']:g}" if values.get("fine") else ""
    refund = f", receives {values['refund']:g} of others' fines" if values.get("refund") else ""
    return said + audited + fine + refund


def _discuss(turn: Turn) -> str:
    accused = json.loads(turn.values.get("accuse") or "[]")
    trust = json.loads(turn.values.get("trust") or "{}")
    trusted = ", ".join(f"{agent} {much}" for agent, much in trust.items())
    return f"accuses {', '.join(accused) or 'nobody'}" + (f"; trusts {trusted}" if trusted else "")


def _choose(turn: Turn) -> str:
    values = turn.values
    choice = values.get("choice")
    if choice is None:
        return "no choice"
    turned = " (noise turned it over)" if values.get("flipped") else ""
    points = f", {values['payoff']} points" if "payoff" in values else ", not scored"
    return f"{choice}s{turned}{points}"


def _dictate(turn: Turn) -> str:
    values = turn.values
    decided = values.get("decision") or "no decision"
    worth = f", {values['dictator_value']:g} to {values['recipient_value']:g}" if "dictator_value" in values else ""
    replicate = f" (replicate {values['replicate']})" if values.get("replicate", 1) > 1 else ""
    return f"meets {values.get('recipient')}: {decided}{worth}{replicate}"


def _values(turn: Turn) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in turn.values.items()) or "nothing"


_DID: Mapping[str, Callable[[Turn], str]] = {
    "pledge": _pledge,
    "catch": _catch,
    "report": _report,
    "discuss": _discuss,
    "choose": _choose,
    "dictate": _dictate,
}


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _indented(text: str, screen: Screen, indent: int, style: str | None = None) -> Iterator[str]:
    """Words of ours, with names in them that are not: on as many lines as they need, the further ones set in."""
    first, *rest = wrapped(visible(text), screen.width - indent - 4)
    for more, line in [(0, first), *((4, line) for line in rest)]:
        shown = line.rstrip()
        yield " " * (indent + more) + (screen.paint(shown, style) if style else shown)


def _quoted(text: str, screen: Screen, style: str | None = None) -> Iterator[str]:
    """Words of others, behind a line."""
    edge = "      │ " if screen.unicode else "      | "
    for line in wrapped(text, screen.width - len(edge)):
        yield edge + (screen.paint(line, style) if style else line)
