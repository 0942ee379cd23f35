import { load } from './api.js'
import { distanceOf, html, Text, useEffect, useMemo, useState } from './html.js'
import { atMostOnceIn } from './often.js'
import { Plot } from './plot.js'

/** Routes, whether they can work, how they failed last, and what fails. Looks again when `failures` has grown. */
export function Overview({ failures }) {
  const [overview, setOverview] = useState(undefined)
  const [error, setError] = useState('')
  const look = useMemo(
    () => atMostOnceIn(1000, () => void load('/overview').then(setOverview, (failure) => setError(failure.message))),
    [],
  )
  useEffect(() => look.call(), [failures])
  useEffect(() => () => look.stop(), [])
  if (error) return html`<p role="alert">${error}</p>`
  if (overview === undefined) return html`<p>Loading …</p>`
  const { readiness, routes } = overview
  const unusable = new Map((readiness.detail?.unusable ?? []).map((one) => [one.route, one]))
  const reasons = Object.entries(overview.failures.reasons)
  const most = Math.max(1, ...reasons.flatMap(([, figures]) => figures))
  return html`<div class="overview">
    <h2>Overview</h2>
    <p>The proxy is <strong>${readiness.ok ? (readiness.degraded ? 'degraded' : 'ready') : 'not ready'}</strong>.</p>
    ${readiness.detail ? html`<pre class="scroll" tabindex="0"><${Text} of=${JSON.stringify(readiness.detail, null, 2)} /></pre>` : null}
    <h3>Failures of the last 15 minutes, by reason</h3>
    ${
      reasons.length === 0
        ? html`<p class="hint">None.</p>`
        : html`<div class="plots">
            ${reasons.map(([reason, figures]) => html`<${Plot} key=${reason} label=${reason} minutes=${overview.failures.minutes} figures=${figures} most=${most} />`)}
          </div>`
    }
    <h3>Routes</h3>
    <div class="scroll" tabindex="0" role="region" aria-label="Routes">
      <table>
        <thead>
          <tr>
            <th scope="col">Route</th>
            <th scope="col">Path</th>
            <th scope="col">Type</th>
            <th scope="col">Backend</th>
            <th scope="col">State</th>
            <th scope="col">Last failure</th>
          </tr>
        </thead>
        <tbody>
          ${routes.map(({ name, path, type, target, lastFailure }) => {
            const missing = unusable.get(name)
            return html`<tr key=${name} class=${missing ? 's-5xx' : ''}>
              <th scope="row">${name}</th>
              <td><code>${path}</code></td>
              <td>${type}</td>
              <td><${Text} of=${target} /></td>
              <td>${missing ? html`${missing.reason}: <code>${missing.field}</code>` : 'usable'}</td>
              <td>
                ${lastFailure ? html`<a href=${`#/requests/${lastFailure.requestId}`}>${lastFailure.reason}</a> (${lastFailure.status}), ${distanceOf(lastFailure.atMs)}` : 'none'}
              </td>
            </tr>`
          })}
        </tbody>
      </table>
    </div>
  </div>`
}
