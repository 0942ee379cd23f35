import { sendTry } from './api.js'
import { LabUser, whoOf } from './lab-user.js'
import { statelessHeaders } from './protocol.js'
import { html, Text, useEffect, useRef, useState } from './html.js'

/** Headers that an MCP client sets; the proxy regenerates the others. */
const SENT_AGAIN = /^(?:accept|content-type|last-event-id|mcp-[a-z0-9-]+)$/

/** Headers of a request that can be repeated: all but masked ones. */
export const headersAgain = ({ received }) =>
  Object.fromEntries(received.headers.filter(([name, value]) => SENT_AGAIN.test(name) && !value.includes('[masked]')))

const asLines = (headers) =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')

const ofLines = (text) =>
  Object.fromEntries(
    text
      .split('\n')
      .filter((line) => line.includes(':'))
      .map((line) => [line.slice(0, line.indexOf(':')).trim().toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )

/** The headers that repeat the body (MCP 2026-07-28), as the body is now. */
function followed(headers, body) {
  let message
  try {
    message = JSON.parse(body)
  } catch {
    return headers
  }
  if (typeof message?.method !== 'string') return headers
  const said = Object.entries(statelessHeaders('', message.method, message.params ?? {}))
  const repeated = said.filter(([name]) => name in headers && name !== 'mcp-protocol-version')
  return { ...headers, ...Object.fromEntries(repeated) }
}

function hintOf({ requestBody }, body) {
  if (requestBody?.cut) return 'Only the beginning of the body is stored; add the rest.'
  return body.includes('[masked]') ? 'Masked values are not stored; re-enter them.' : ''
}

/** Repeats a request through the proxy, optionally edited. */
export function SendAgain({ request, users }) {
  const { route, method } = request.summary
  const own = headersAgain(request)
  const [form, setForm] = useState({
    headers: asLines(own),
    body: request.requestBody?.text ?? '',
    user: '',
    token: '',
  })
  const [outcome, setOutcome] = useState(undefined)
  const running = useRef(undefined)
  useEffect(() => () => running.current?.abort(), [])
  if (route === '' || !['POST', 'GET', 'DELETE'].includes(method)) return null
  const set = (name) => (event) => setForm({ ...form, [name]: event.target.value })
  const submit = async (event) => {
    event.preventDefault()
    running.current?.abort()
    const controller = new AbortController()
    running.current = controller
    setOutcome({ said: 'In progress …' })
    const isEdited = form.headers !== asLines(own)
    const body = method === 'POST' && form.body !== '' ? { body: form.body } : {}
    try {
      const { status, headers, response } = await sendTry(
        {
          route,
          method,
          headers: isEdited ? ofLines(form.headers) : followed(own, form.body),
          ...body,
          ...whoOf(form),
        },
        controller.signal,
      )
      setOutcome({ said: `Answered ${status}.`, id: headers.get('x-request-id') })
      // An open stream is followed in the view of its request.
      await response.body?.cancel()
    } catch (error) {
      if (!controller.signal.aborted) setOutcome({ said: error.message })
    }
  }
  const hint = hintOf(request, form.body)
  return html`<details class="again-form">
    <summary>Send again</summary>
    <form onSubmit=${submit} aria-label="Send again" autocomplete="off">
      <label><span>Headers</span><textarea name="headers" rows="4" spellcheck="false" value=${form.headers} onInput=${set('headers')}></textarea></label>
      ${method === 'POST' ? html`<label><span>Body</span><textarea name="body" rows="8" spellcheck="false" value=${form.body} onInput=${set('body')}></textarea></label>` : null}
      ${hint ? html`<p class="hint">${hint}</p>` : null}
      <${LabUser} users=${users} user=${form.user} onChange=${set('user')} />
      <label><span>Token</span><input type="password" name="token" autocomplete="off" spellcheck="false" value=${form.token} onInput=${set('token')} /></label>
      <button type="submit" class="main">Send to ${route}</button>
      <p role="status">
        ${outcome ? html`<${Text} of=${outcome.said} />` : ''}
        ${outcome?.id ? html` <a href=${`#/requests/${outcome.id}`}>The request, as the proxy saw it</a>` : null}
      </p>
    </form>
  </details>`
}
