import type { Sample } from '../growth/sample.ts'

/** A chart: one line for each process, over the time of the run. */
export interface Plotted {
  readonly title: string
  readonly unit: string
  readonly lines: readonly { readonly name: string; readonly points: readonly (readonly [x: number, y: number])[] }[]
  /** When a fault was on, in seconds. */
  readonly faults: readonly { readonly atSeconds: number; readonly seconds: number }[]
  readonly seconds: number
}

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [720, 220, 56, 28, 28]
const COLORS = ['#1f6feb', '#bf5700', '#2da44e', '#8250df', '#cf222e', '#57606a']

/** Values of one measure, a line for each replica; those of a replica that was started again go on in its line. */
export const linesOf = (samples: readonly Sample[], measure: keyof Sample['values']): Plotted['lines'] =>
  [...Map.groupBy(samples, ({ of }) => of.replace(/\.\d+$/, ''))].flatMap(([name, own]) => {
    const points = own.flatMap(({ atSeconds, values }) => {
      const value = values[measure]
      return value === undefined || Number.isNaN(value) ? [] : [[atSeconds, value] as const]
    })
    return points.length === 0 ? [] : [{ name, points }]
  })

/** An SVG of its own, which needs no style and no script. */
export function plotOf({ title, unit, lines, faults, seconds }: Plotted): string {
  const most = niceAbove(Math.max(1, ...lines.flatMap(({ points }) => points.map(([, y]) => y))))
  const x = (at: number): string => (LEFT + (at / Math.max(1, seconds)) * (WIDTH - LEFT - 12)).toFixed(1)
  const y = (value: number): string => (HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP)).toFixed(1)
  const text = (left: string, top: string, words: string, more = ''): string =>
    `<text x="${left}" y="${top}" font-family="sans-serif" font-size="11" fill="#57606a"${more}>${escape(words)}</text>`
  const scale = [0, 0.5, 1].map(
    (part) =>
      `<line x1="${LEFT}" x2="${WIDTH - 12}" y1="${y(most * part)}" y2="${y(most * part)}" stroke="#d0d7de"/>` +
      text(String(LEFT - 6), y(most * part), String(Math.round(most * part)), ' text-anchor="end" dy="4"'),
  )
  const times = [0, 0.5, 1].map((part) =>
    text(
      x(seconds * part),
      String(HEIGHT - 10),
      `${Math.round(seconds * part)} s`,
      ` text-anchor="${part === 1 ? 'end' : 'middle'}"`,
    ),
  )
  // All share a path: an hour has hundreds.
  const [height, least] = [HEIGHT - BOTTOM - TOP, 0.5]
  const bands = faults.map(({ atSeconds, seconds: lasts }) => {
    const width = Math.max(least, Number(x(atSeconds + lasts)) - Number(x(atSeconds))).toFixed(1)
    return `M${x(atSeconds)} ${TOP}h${width}v${height}h-${width}z`
  })
  const drawn = lines.map(({ points }, index) => {
    const path = points.map(([at, value]) => `${x(at)},${y(value)}`).join(' ')
    return `<polyline points="${path}" fill="none" stroke="${COLORS[index % COLORS.length]}" stroke-width="1.5"/>`
  })
  const names = lines.map(({ name }, index) =>
    text(
      String(WIDTH - 12 - (lines.length - 1 - index) * 90),
      '16',
      name,
      ` text-anchor="end" style="fill:${COLORS[index % COLORS.length]}"`,
    ),
  )
  const heading = text(String(LEFT), '16', unit === '' ? title : `${title}, ${unit}`, ' font-weight="bold"')
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">`,
    `<title>${escape(title)}</title><rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    `<path d="${bands.join('')}" fill="#cf222e" fill-opacity="0.08"/>`,
    ...scale,
    ...times,
    heading,
    ...names,
    ...drawn,
    '</svg>',
    '',
  ].join('\n')
}

const escape = (words: string): string => words.replace(/[<>&"]/g, (char) => `&#${char.charCodeAt(0)};`)

/** The next round number: 1, 2 or 5 times a power of ten. */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10) * power
}
