import { html, Text } from './html.js'

const DROP_RULES = {
  hop_by_hop: 'hop-by-hop',
  regenerated: 'recreated by the proxy',
  caller_credential: 'a credential of the caller, or a copy of it',
  untrusted: 'an unverified claim of the client about itself',
  set_by_route: 'set by the credential of the route',
  other_spelling: 'another spelling of a reserved name',
}

const ANSWER_RULES = {
  hop_by_hop: 'hop-by-hop',
  cookie: 'a session between backend and proxy',
  about_our_credential: 'about the credential that the proxy sent',
  said_by_us: 'set by the proxy, or would bypass it',
  credential_inside: 'contains the credential of the request',
  replaced: 'replaced by the proxy',
  answered_by_us: 'the proxy responded itself',
}

/** Rules that remove a credential; headers that go for any other rule are routine. */
const CREDENTIAL_RULES = new Set(['caller_credential', 'cookie', 'credential_inside'])
const dropped = (name, value, rule, rules) => ({
  name,
  value,
  mark: CREDENTIAL_RULES.has(rule) ? 'credential' : 'dropped',
  why: rules[rule] ?? rule,
})

const MARKS = { added: '+ added', replaced: '~ replaced', same: '', credential: '− removed', dropped: '− dropped' }

/** Header lines: name, value, what became of each and why. */
function HeaderTable({ label, lines }) {
  if (lines.length === 0) return html`<p class="hint">No headers.</p>`
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
    <table class="headers">
      <thead class="unseen">
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Value</th>
          <th scope="col">Change</th>
        </tr>
      </thead>
      <tbody>
        ${lines.map(
          ({ name, value, mark = 'same', why }, index) =>
            html`<tr key=${index} class=${`m-${mark}`}>
              <th scope="row"><${Text} of=${name} /></th>
              <td class="value"><${Text} of=${value} /></td>
              <td class="mark">${MARKS[mark]}${why ? html`<small>${MARKS[mark] ? ': ' : ''}${why}</small>` : null}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

/** The received request, with the headers that were not forwarded. */
export function ReceivedPart({ request }) {
  const { summary, received, httpVersion, peer } = request
  const rules = new Map(received.dropped.map(({ name, rule }) => [name, rule]))
  const lines = received.headers.map(([name, value]) =>
    rules.has(name) ? dropped(name, value, rules.get(name), DROP_RULES) : { name, value },
  )
  return html`<section class="part" aria-label="Received">
    <h3>Received</h3>
    <p class="line">
      <code>${summary.method} <${Text} of=${summary.target} /> HTTP/${httpVersion}</code> from <${Text} of=${peer} />
    </p>
    <${HeaderTable} label="Headers that were received" lines=${lines} />
  </section>`
}

/** The request to the backend, compared with the received one. */
export function SentPart({ attempt, request }) {
  const { sent, again, number } = attempt
  const title = request.attempts.length > 1 ? `Sent, attempt ${number}` : 'Sent'
  if (sent === undefined)
    return html`<section class="part" aria-label=${title}>
      <h3>${title}</h3>
      <p class="hint">Nothing was sent to the backend.</p>
    </section>`
  const rules = new Map(request.received.dropped.map(({ name, rule }) => [name, rule]))
  const removed = sent.removed.map((name) => dropped(name, '', rules.get(name), DROP_RULES))
  return html`<section class="part" aria-label=${title}>
    <h3>${title}</h3>
    <p class="line">
      <code>${sent.method} <${Text} of=${sent.target} /></code> to <${Text} of=${request.targetOrigin} />
    </p>
    <${HeaderTable} label=${`Headers that were sent, attempt ${number}`} lines=${[...sent.headers, ...removed]} />
    ${
      sent.signing
        ? html`<details>
            <summary>What was signed (SigV4)</summary>
            <h4>Canonical request</h4>
            <pre class="scroll" tabindex="0"><${Text} of=${sent.signing.canonicalRequest} /></pre>
            <h4>String to sign</h4>
            <pre class="scroll" tabindex="0"><${Text} of=${sent.signing.stringToSign} /></pre>
          </details>`
        : null
    }
    ${again ? html`<p class="again">${attempt.isRepeated ? 'Retried' : 'A retry was planned, and nothing was sent'}: ${again.reason}${again.status ? `, the backend answered ${again.status}` : ''}.</p>` : null}
  </section>`
}

/** The response to the client, with the backend headers that were removed. */
export function AnswerPart({ request }) {
  const { answer, summary } = request
  const { fromBackend, toClient } = answer
  const lines = [
    ...(toClient?.headers ?? []).map(([name, value]) => ({
      name,
      value,
      mark: fromBackend && !fromBackend.headers.some(([other]) => other === name) ? 'added' : 'same',
    })),
    ...answer.dropped.map(({ name, value, rule }) => dropped(name, value, rule, ANSWER_RULES)),
  ]
  return html`<section class="part" aria-label="Answer">
    <h3>Answer</h3>
    <p class="facts">
      <span
        >${toClient ? html`<code>${toClient.status}</code> to the client` : summary.isOpen ? 'None yet.' : 'None was sent.'}</span
      >
      <span
        >${fromBackend ? html`<code>${fromBackend.status}</code> from the backend` : toClient ? 'made by the proxy itself' : ''}</span
      >
    </p>
    ${toClient ? html`<${HeaderTable} label="Headers of the answer" lines=${lines} />` : null}
  </section>`
}
