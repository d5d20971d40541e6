// SPDX-License-Identifier: Apache-2.0
//
// Lays out the document: sections of words, tables and charts.
'use strict';
(() => {
  const doc = JSON.parse(document.getElementById('document').textContent);
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Told apart by people who see colours differently, on white and on black (Okabe and Ito).
  const palette = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8c8c8c', '#b0a000'];
  const charts = [];

  // Names such as server_clock_not_stepped may break where their words end.
  const breakable = (text) => text.replaceAll('_', '_\u200b');

  function table(block) {
    const head = make('thead', {}, make('tr', {}, ...block.headers.map((text) => make('th', {scope: 'col'}, text))));
    let last = null;
    const rows = block.rows.map((row) => {
      const starts = row[0].text !== last;
      const first = last === null;
      last = row[0].text;
      return make('tr', {}, ...row.map((cell, i) => {
        const td = make('td', {'data-label': block.headers[i]});
        if (starts && !first && block.rows.length > 6) td.className = 'new';
        if (cell.text === '') td.classList.add('empty');
        const text = breakable(cell.text);
        if (cell.text.length <= 14) td.classList.add('short');
        td.append(make('span', cell.tone ? {class: 'tag ' + cell.tone} : {}, text));
        return td;
      }));
    });
    return make('div', {class: 'table' + (block.headers.length > 7 ? ' wide' : ''), tabindex: '0'},
                make('table', {}, head, make('tbody', {}, ...rows)));
  }

  const short = (value, unit) => {
    if (value === null || value === undefined) return '';
    const digits = (x) => x >= 100 ? Math.round(x).toLocaleString('en') : Number(x.toPrecision(3)).toString();
    if (unit === 'µs' && value >= 1e6) return digits(value / 1e6) + ' s';
    if (unit === 'µs' && value >= 1e3) return digits(value / 1e3) + ' ms';
    if (unit === '/s') return digits(value) + '/s';
    return digits(value) + (unit ? ' ' + unit : '');
  };

  function chart(block) {
    const canvas = make('canvas', {role: 'img', 'aria-label': block.title});
    charts.push({canvas, block});
    return make('figure', {}, make('figcaption', {}, block.title), make('div', {class: 'canvas'}, canvas));
  }

  function draw({canvas, block}) {
    const line = block.type === 'line';
    const ink = color('--soft'), grid = color('--line');
    const seen = new Map();
    const colorOf = (label) => {
      if (!seen.has(label)) seen.set(label, palette[seen.size % palette.length]);
      return seen.get(label);
    };
    const wide = canvas.parentElement.clientWidth > 420;
    const linear = {ticks: {color: ink, callback: (v) => short(Number(v), block.unit)}, grid: {color: grid}};
    // On a logarithmic scale only powers of ten are labelled: all else would overlap.
    const values = {...linear, type: block.log ? 'logarithmic' : 'linear',
      ticks: {color: ink, maxRotation: 0, autoSkip: !block.log,
        callback: (v) => (!block.log || Number.isInteger(Math.log10(v) + 1e-9 - 1e-9)) ? short(Number(v), block.unit) : ''}};
    const labels = {ticks: {color: ink, autoSkip: line, maxRotation: line ? 0 : 0}, grid: {display: false},
      title: {display: Boolean(block.x), text: block.x, color: ink}};
    const datasets = block.sets.map((set) => ({
      label: set.label, data: set.data, spanGaps: true, skipNull: true,
      backgroundColor: colorOf(set.label), borderColor: colorOf(set.label),
      borderWidth: line ? 2 : 0, borderDash: set.dashed ? [5, 4] : [], pointRadius: line ? 2.5 : 0,
      maxBarThickness: 16, borderRadius: 2, dashed: set.dashed,
    }));
    return new Chart(canvas, {
      type: line ? 'line' : 'bar',
      data: {labels: block.labels.map(String), datasets},
      options: {
        indexAxis: line ? 'x' : 'y', responsive: true, maintainAspectRatio: false, animation: false,
        scales: line ? {x: labels, y: values} : {x: values, y: labels},
        plugins: {
          legend: {position: 'bottom', display: datasets.length > 1,
            labels: {color: color('--ink'), boxWidth: 12, boxHeight: 12, padding: wide ? 12 : 8,
              filter: (item, data) => !data.datasets[item.datasetIndex].dashed}},
          tooltip: {callbacks: {label: (item) =>
            `${item.dataset.label}${item.dataset.dashed ? ', floor' : ''}: ${short(item.raw, block.unit)}`}},
        },
      },
    });
  }

  const blocks = {
    words: (block) => make('p', {}, block.text),
    callout: (block) => make('p', {class: 'callout ' + block.tone}, block.text),
    list: (block) => make('ul', {}, ...block.items.map((text) => make('li', {}, text))),
    table, chart,
  };

  document.getElementById('title').textContent = doc.title;
  document.getElementById('subtitle').textContent = doc.subtitle;
  document.title = 'dlock compare: ' + doc.title;
  const main = document.getElementById('main');
  const contents = document.getElementById('contents');
  for (const text of doc.banners) main.append(make('p', {class: 'callout bad banner', role: 'alert'}, text));
  for (const section of doc.sections) {
    const element = make('section', {id: section.id}, make('h2', {}, section.title));
    let group = null;
    for (const block of section.blocks) {
      if (block.kind === 'chart') {
        if (!group) element.append(group = make('div', {class: 'charts'}));
        group.append(chart(block));
      } else {
        group = null;
        element.append(blocks[block.kind](block));
      }
    }
    main.append(element);
    contents.append(make('li', {}, make('a', {href: '#' + section.id}, section.title)));
  }

  // On a wide screen the sections stand beside the text; else they fold.
  const wide = matchMedia('(min-width: 60.01rem)');
  const unfold = () => { document.getElementById('sections').open = wide.matches; };
  wide.addEventListener('change', unfold);
  unfold();

  let drawn = [];
  const drawAll = () => {
    for (const one of drawn) one.destroy();
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    drawn = charts.map(draw);
  };
  drawAll();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
  document.documentElement.setAttribute('data-charts', String(drawn.length));
})();
