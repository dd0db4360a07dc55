(function () {
"use strict";
// Figures come alive when they are scrolled to; until then, and in print before that, their pictures stand in.
const options = {renderer: "svg", ast: true, actions: false, logLevel: 1};

function enliven(figure) {
  const specification = JSON.parse(document.getElementById("figure-" + figure.dataset.figure).textContent);
  const picture = figure.querySelector("img");
  const live = figure.querySelector(".live");
  window.vegaEmbed(live, specification, options).then(function () {
    picture.hidden = true;
    live.hidden = false;
    figure.dataset.live = "yes";
  }).catch(function (error) {
    console.error("figure " + figure.dataset.figure + ": " + error.message);
  });
}

const seen = new IntersectionObserver(function (entries) {
  for (const entry of entries) {
    if (entry.isIntersecting) {
      seen.unobserve(entry.target);
      enliven(entry.target);
    }
  }
}, {rootMargin: "300px"});
document.querySelectorAll("figure.chart").forEach(function (figure) { seen.observe(figure); });

// Replays: #run=RUN_ID opens one, so that a run can be linked to and the browser's "back" closes it.
const anchors = JSON.parse(document.getElementById("anchors").textContent);
const dialog = document.getElementById("replay");
const body = document.getElementById("replay-body");
const START = "#run=";

function named(hash) {
  try {
    return hash.startsWith(START) ? decodeURIComponent(hash.slice(START.length)) : null;
  } catch (error) {
    return null; // not how a page's address is written
  }
}

function follow() {
  const run = named(location.hash);
  if (run !== null && Object.hasOwn(anchors, run)) {
    body.replaceChildren(document.getElementById("replay-" + anchors[run]).content.cloneNode(true));
    if (!dialog.open) { dialog.showModal(); }
    dialog.scrollTop = 0;
  } else if (dialog.open) {
    dialog.close();
  }
}

dialog.addEventListener("close", function () {
  body.replaceChildren();
  if (location.hash.startsWith(START)) {
    history.replaceState(null, "", location.pathname + location.search);
  }
});
dialog.addEventListener("click", function (event) {
  if (event.target === dialog) { dialog.close(); }
});
window.addEventListener("hashchange", follow);
follow();
})();
