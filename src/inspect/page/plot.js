import UPlot from './lib/uplot.js'
import { html, useEffect, useRef } from './html.js'

const WIDTH = 240
const HEIGHT = 72

/** A small plot of figures by the minute, with the figures as text for whoever can't see it. */
export function Plot({ label, minutes, figures }) {
  const place = useRef(null)
  useEffect(() => {
    const colour = getComputedStyle(place.current).color
    const plot = new UPlot(
      {
        width: WIDTH,
        height: HEIGHT,
        cursor: { show: false },
        legend: { show: false },
        select: { show: false },
        axes: [{ show: false }, { show: false }],
        scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(1, most)] } },
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
  }, [minutes, figures])
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
