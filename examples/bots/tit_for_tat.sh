#!/bin/sh
# Tit for tat for the prisoner's dilemma, in sh and any awk: {process: "sh examples/bots/tit_for_tat.sh"}.
#
# awk takes the view (one line of JSON) apart into strings and signs and follows the nesting, so that spaces and the
# order of the keys do not matter. Each view gets an awk of its own, because some awks wait for more input than a line.

choose='
# key[depth] is the key whose value is being read at that depth
{
    choice = "cooperate"
    while (match($0, /"([^"\\]|\\.)*"|[][{}:,]|[^][{}:," \t]+/)) {
        word = substr($0, RSTART, RLENGTH)
        $0 = substr($0, RSTART + RLENGTH)
        if (word == "{" || word == "[")
            key[++depth] = ""
        else if (word == "}" || word == "]")
            depth--
        else if (word == ":")
            key[depth] = last
        else if (word == ",")
            key[depth] = ""
        else {
            gsub(/^"|"$/, "", word)
            last = word
            if (depth == 1 && key[1] == "you")
                me = word
            if (depth == 4 && key[1] == "history" && key[3] == "choices" && key[4] != "")
                latest[key[4]] = word
        }
    }
    for (agent in latest)
        if (agent != me)
            choice = latest[agent]
    printf "{\"type\": \"choose\", \"choice\": \"%s\"}\n", choice
}'

while IFS= read -r view; do
    printf '%s\n' "$view" | awk "$choose"
done
