// Draws the report's charts in the browser's own scheme, and a light copy for paper.
(() => {
  "use strict";
  const { specs, datasets } = JSON.parse(document.getElementById("charts").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();

  const withData = (spec) => ({
    ...structuredClone(spec),
    datasets: Object.fromEntries(spec.datasets.map((name) => [name, structuredClone(datasets[name])])),
  });

  async function draw(place, scheme) {
    const name = place.dataset.chart;
    const key = `${name} ${scheme}`;
    if (drawn.has(key)) return;
    const box = document.createElement("div");
    box.className = scheme;
    place.append(box);
    drawn.set(key, box);
    const actions = { export: true, source: false, compiled: false, editor: false };
    try {
      await vegaEmbed(box, withData(specs[name][scheme]), {
        actions, renderer: "svg", downloadFileName: `rise-${name}`,
        i18n: { CLICK_TO_VIEW_ACTIONS: "Save this chart" },
      });
    } catch (error) {
      box.textContent = `This chart could not be drawn: ${error.message}. Its numbers are in the tables.`;
      console.error(error);
    }
  }

  async function drawAll(scheme) {
    for (const place of document.querySelectorAll("[data-chart]")) await draw(place, scheme);
  }

  async function show() {
    await drawAll(dark.matches ? "dark" : "light");
    document.documentElement.dataset.charts = "drawn";
    // Paper is white whatever the screen is, and there is no time to draw when printing starts.
    await drawAll("light");
    document.documentElement.dataset.paper = "drawn";
  }

  dark.addEventListener("change", show);
  show();
})();
