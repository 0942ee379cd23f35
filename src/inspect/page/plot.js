import UPlot from './lib/uplot.js'
import { html, minuteOf, useEffect, useRef } from './html.js'

const WIDTH = 240
const HEIGHT = 96
const AXIS = 32
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000]

/** A small plot of figures by the minute, with the figures as text for whoever can't see it; `most` is the top of the scale, the same for all plots beside each other. */
export function Plot({ label, minutes, figures, most }) {
  const place = useRef(null)
  useEffect(() => {
    const colour = getComputedStyle(place.current).color
    const plot = new UPlot(
      {
        width: WIDTH,
        height: HEIGHT,
        cursor: { show: false },
        legend: { show: false },
        select: { show: false, left: 0, top: 0, width: 0, height: 0 },
        // What the scale came out as, for whoever reads the page by a program.
        hooks: { ready: [({ root, scales }) => (root.dataset.top = String(scales.y.max))] },
        axes: [
          {
            stroke: colour,
            size: 24,
            space: 60,
            grid: { show: false },
            ticks: { show: false },
            // Its own are of another clock than the rest of the page, with a date below that has no room.
            values: (_, seconds) => seconds.map((at) => minuteOf(at * 1000)),
          },
          { stroke: colour, size: AXIS, incrs: STEPS, grid: { show: false } },
        ],
        scales: { x: { time: true }, y: { range: () => [0, most] } },
        series: [
          {},
          {
            stroke: colour,
            width: 1.5,
            fill: colour,
            paths: UPlot.paths.bars({ size: [0.8, 100] }),
            points: { show: false },
          },
        ],
      },
      [minutes.map((ms) => ms / 1000), figures],
      place.current,
    )
    return () => plot.destroy()
  }, [minutes, figures, most])
  const sum = figures.reduce((all, one) => all + one, 0)
  return html`<figure class="plot">
    <figcaption>${label} <strong>${sum}</strong></figcaption>
    <div
      class="canvas"
      ref=${place}
      role="img"
      aria-label=${`${label}: ${sum} in 15 minutes, by the minute ${figures.join(', ')}`}
    ></div>
  </figure>`
}
