// Each picture is drawn from the data below it. The static one stays for print, and where no script runs.
for (const data of document.querySelectorAll("figure > script")) {
  const place = document.createElement("div");
  data.before(place);
  const { data: traces, layout } = JSON.parse(data.textContent);
  Plotly.newPlot(place, traces, layout, { displayModeBar: false, responsive: true });
  data.parentElement.classList.add("explored");
}
