import { durationOf, html } from './html.js'

const NAMES = {
  waiting: 'Waiting',
  caller: 'Caller',
  body: 'Request body',
  credential: 'Credential',
  connect: 'Connect',
  first_byte: 'First byte',
  answer: 'Answer',
}

/** Where the time went, as bars on one scale and as figures. */
export function Timeline({ phases }) {
  const end = phases.at(-1)?.toMs ?? 0
  if (end === 0) return null
  const percent = (ms) => `${((100 * ms) / end).toFixed(2)}%`
  return html`<section class="part" aria-label="Time line">
    <h3>Time line</h3>
    <table class="timeline">
      <thead class="unseen">
        <tr>
          <th scope="col">Stage</th>
          <th scope="col">Start</th>
          <th scope="col">Duration</th>
        </tr>
      </thead>
      <tbody>
        ${phases.map(
          ({ name, attempt, fromMs, toMs }, index) =>
            html`<tr key=${index}>
              <th scope="row">${NAMES[name]}${attempt > 1 ? ` (attempt ${attempt})` : ''}</th>
              <td class="track">
                <div
                  class=${`span p-${name}`}
                  style=${{ marginLeft: percent(fromMs), width: percent(toMs - fromMs) }}
                ></div>
              </td>
              <td class="number">${durationOf(toMs - fromMs)}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </section>`
}
