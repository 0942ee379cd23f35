import { SendAgain } from './again.js'
import { follow, load } from './api.js'
import { Body } from './bodies.js'
import { Copy, curlOf } from './curl.js'
import { CallerPart, CredentialPart, RulesPart } from './decision.js'
import { outcomeClassOf } from './filters.js'
import { SaveHar } from './har.js'
import { AnswerPart, ReceivedPart, SentPart } from './heads.js'
import { durationOf, html, Text, timeOf, useEffect, useState } from './html.js'
import { Timeline } from './timeline.js'
import { ErrorBox, NotConnected } from './why.js'

/** Loads one request and follows it until it is complete. */
function useRequest(id) {
  const [state, setState] = useState({ request: undefined, text: '', error: '' })
  useEffect(() => {
    let isOver = false
    setState({ request: undefined, text: '', error: '' })
    const stop = follow(
      `/requests/${id}/events`,
      {
        // The whole record includes the chunks received so far.
        request: (request) => setState({ request, text: request.responseBody?.text ?? '', error: '' }),
        text: ({ text }) => setState((before) => ({ ...before, text: before.text + text })),
        over(_, source) {
          isOver = true
          source.close()
        },
      },
      (connection) => {
        if (connection !== 'closed' || isOver) return
        // An event stream does not say why it was refused.
        const say = ({ status, message }) =>
          setState({
            request: undefined,
            text: '',
            error: status === 404 ? 'This request is no longer stored.' : message,
          })
        load(`/requests/${id}`).catch(say)
      },
    )
    return stop
  }, [id])
  return state
}

function Head({ request, onClose }) {
  const { summary } = request
  const status = summary.isOpen ? `${summary.status || ''} open` : summary.status
  return html`<header class="request-head">
    <h2 tabindex="-1" id="request-title">
      <span class="verb">${summary.method}</span> <${Text} of=${summary.target} />
    </h2>
    <p class="facts">
      <span class=${`badge b-${outcomeClassOf({ ...summary, isOpen: false })}`}>${status}</span>
      ${summary.reason ? html`<strong><${Text} of=${summary.reason} /></strong>` : null}
      <span>${summary.route || 'no route'}${summary.type ? ` (${summary.type})` : ''}</span>
      <span>${timeOf(summary.atMs)}</span>
      <span>${summary.isOpen ? 'in progress' : durationOf(summary.durationMs)}</span>
      <span>id <code>${summary.id}</code></span>
    </p>
    <p class="actions">
      <${Copy} text=${() => curlOf(request)} label="Copy as curl" />
      <${SaveHar} ids=${[summary.id]} />
      <button type="button" onClick=${onClose}>Close</button>
    </p>
  </header>`
}

function Bodies({ request, text }) {
  if (request.requestBody === undefined && request.responseBody === undefined)
    return html`<section class="part">
      <h3>Bodies</h3>
      <p class="hint">
        No body is kept: there was none, it was refused before it was read, or the inspector shows heads only.
      </p>
    </section>`
  const response = request.responseBody && { ...request.responseBody, text: text || request.responseBody.text }
  return html`<section class="part" aria-label="Bodies">
    <h3>Bodies</h3>
    <${Body} title="Request body" body=${request.requestBody} />
    <${Body} title="Response body" body=${response} isGrowing=${request.summary.isOpen} />
  </section>`
}

/** Everything about one request, in the order in which it went. */
export function RequestDetail({ id, users, onClose }) {
  const { request, text, error } = useRequest(id)
  useEffect(() => {
    const onKey = (event) => {
      if (event.key === 'Escape') onClose()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [onClose])
  const isThere = request !== undefined
  useEffect(() => {
    if (isThere && matchMedia('(max-width: 60rem)').matches) document.getElementById('request-title')?.focus()
  }, [isThere, id])
  if (error !== '')
    return html`<section class="request" aria-label="Request">
      <p role="alert">${error}</p>
      <button type="button" onClick=${onClose}>Close</button>
    </section>`
  if (request === undefined) return html`<section class="request" aria-label="Request"><p>Loading …</p></section>`
  return html`<section class="request" aria-label="Request">
    <${Head} request=${request} onClose=${onClose} />
    ${
      request.connection
        ? html`<${NotConnected} connection=${request.connection} why=${request.why} />`
        : html`<${ErrorBox} summary=${request.summary} why=${request.why} detail=${request.detail} />`
    }
    <${SendAgain} request=${request} users=${users} />
    <${Timeline} phases=${request.timeline} />
    <${ReceivedPart} request=${request} />
    <${CallerPart} caller=${request.caller} />
    <${RulesPart} rules=${request.rules} />
    <${CredentialPart} request=${request} />
    ${request.attempts.map((attempt) => html`<${SentPart} key=${attempt.number} attempt=${attempt} request=${request} />`)}
    <${AnswerPart} request=${request} />
    <${Bodies} request=${request} text=${text} />
  </section>`
}
