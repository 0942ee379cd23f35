import { load } from './api.js'
import { distanceOf, html, Text, useEffect, useMemo, useState } from './html.js'
import { atMostOnceIn } from './often.js'
import { Plot } from './plot.js'

/** Routes with their state and last failure, and requests by the minute. Refreshes when `changes` changes. */
export function Overview({ changes }) {
  const [overview, setOverview] = useState(undefined)
  const [error, setError] = useState('')
  const look = useMemo(
    () => atMostOnceIn(1000, () => void load('/overview').then(setOverview, (failure) => setError(failure.message))),
    [],
  )
  useEffect(() => look.call(), [changes])
  useEffect(() => () => look.stop(), [])
  if (error) return html`<p role="alert">${error}</p>`
  if (overview === undefined) return html`<p>Loading …</p>`
  const { readiness, routes } = overview
  const unusable = new Map((readiness.detail?.unusable ?? []).map((one) => [one.route, one]))
  const { minutes, outcomes } = overview.failures
  const reasons = Object.entries(overview.failures.reasons)
    .map(([reason, figures]) => [reason, figures.reduce((sum, one) => sum + one, 0)])
    .toSorted(([, one], [, other]) => other - one)
  return html`<div class="overview">
    <h2>Overview</h2>
    <p>The proxy is <strong>${readiness.ok ? (readiness.degraded ? 'degraded' : 'ready') : 'not ready'}</strong>.</p>
    ${readiness.detail ? html`<pre class="scroll" tabindex="0"><${Text} of=${JSON.stringify(readiness.detail, null, 2)} /></pre>` : null}
    <h3>Requests of the last 15 minutes</h3>
    <${Plot} minutes=${minutes} outcomes=${outcomes} />
    <h3>Failures of the last 15 minutes, by reason</h3>
    ${
      reasons.length === 0
        ? html`<p class="hint">None.</p>`
        : html`<table class="reasons">
            <thead>
              <tr>
                <th scope="col">Reason</th>
                <th scope="col" class="number">Count</th>
              </tr>
            </thead>
            <tbody>
              ${reasons.map(
                ([reason, count]) =>
                  html`<tr key=${reason}>
                    <th scope="row"><${Text} of=${reason} /></th>
                    <td class="number">${count}</td>
                  </tr>`,
              )}
            </tbody>
          </table>`
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
