import UPlot from './lib/uplot.js'
import { html, minuteOf, useEffect, useRef } from './html.js'

const WIDTH = 560
const HEIGHT = 160
const AXIS = 40
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000]
/** From the bottom of each bar to its top. */
const STACK = ['5xx', '4xx', 'not_connected', 'ok']
const labelOf = (name) => name.replace('_', ' ')
const MINUTE_SECONDS = 60

const sumOf = (figures) => figures.reduce((sum, one) => sum + one, 0)

/** One chart of requests by the minute, stacked by outcome, with the figures as text for screen readers. */
export function Plot({ minutes, outcomes }) {
  const place = useRef(null)
  useEffect(() => {
    const colorOf = (element) => getComputedStyle(element).color
    const axis = colorOf(place.current)
    const below = minutes.map(() => 0)
    const stacked = STACK.map((name) => ({
      name,
      color: colorOf(place.current.parentElement.querySelector(`.k-${name}`)),
      tops: outcomes[name].map((figure, at) => (below[at] += figure)),
    }))
    const most = Math.max(1, ...below)
    const plot = new UPlot(
      {
        width: WIDTH,
        height: HEIGHT,
        cursor: { show: false },
        legend: { show: false },
        select: { show: false, left: 0, top: 0, width: 0, height: 0 },
        // The top of the scale, for programs that read the page.
        hooks: { ready: [({ root, scales }) => (root.dataset.top = String(scales.y.max))] },
        axes: [
          {
            stroke: axis,
            size: 24,
            space: 60,
            grid: { show: false },
            ticks: { show: false },
            // The library's labels use a different clock than the page, and a date that does not fit.
            values: (_, seconds) => seconds.map((at) => minuteOf(at * 1000)),
          },
          { stroke: axis, size: AXIS, incrs: STEPS, grid: { show: false } },
        ],
        scales: {
          // Half a minute on each side, so that the first and the last bar are whole.
          x: { time: true, range: (_, from, to) => [from - MINUTE_SECONDS / 2, to + MINUTE_SECONDS / 2] },
          y: { range: () => [0, most] },
        },
        // The highest first: lower ones are drawn over it.
        series: [
          {},
          ...stacked.toReversed().map(({ name, color }) => ({
            label: name,
            stroke: color,
            width: 1,
            fill: color,
            paths: UPlot.paths.bars({ size: [0.8, 100] }),
            points: { show: false },
          })),
        ],
      },
      [minutes.map((ms) => ms / 1000), ...stacked.toReversed().map(({ tops }) => tops)],
      place.current,
    )
    return () => plot.destroy()
  }, [minutes, outcomes])
  const sums = STACK.map((name) => [name, sumOf(outcomes[name])]).toReversed()
  return html`<figure class="plot">
    <figcaption>
      ${sums.map(([name, sum]) => html`<span key=${name} class=${`k-${name}`}>${labelOf(name)} <strong>${sum}</strong></span> `)}
    </figcaption>
    <div
      class="canvas"
      ref=${place}
      role="img"
      aria-label=${`Requests in 15 minutes: ${sums.map(([name, sum]) => `${labelOf(name)} ${sum}`).join(', ')}`}
    ></div>
  </figure>`
}
