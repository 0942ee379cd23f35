import { html, Text, useEffect, useRef } from './html.js'

const CUTS = {
  longer: 'Only the beginning is kept.',
  no_room: 'Truncated: memory limit reached.',
  binary: 'It is not text, so it is not kept.',
  unknown_encoding: 'Its encoding is not known here, so it is not kept.',
}

/** Indented JSON; other text unchanged. */
export function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** The events of a stream in order, with type and data. Undefined for other text. */
export function eventsOf(text) {
  if (!/^(?:\uFEFF)?(?:data|event|id|retry|:)/.test(text)) return undefined
  return text
    .split(/\r?\n\r?\n/)
    .map((block) => {
      const lines = block.split(/\r?\n/)
      const of = (name) =>
        lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ''))
      return { kind: of('event').at(-1) ?? 'message', data: of('data').join('\n'), comments: of('').length }
    })
    .filter(({ data }) => data !== '')
}

/** A short title for a JSON-RPC message. */
export function titleOf(text) {
  try {
    const message = JSON.parse(text)
    if (Array.isArray(message)) return `batch of ${message.length}`
    if (message.method !== undefined)
      return message.id === undefined ? `notification ${message.method}` : `request ${message.method}`
    if (message.error !== undefined) return `error ${message.error?.code ?? ''}`
    return message.result === undefined ? '' : 'result'
  } catch {
    return ''
  }
}

function Events({ events, isGrowing }) {
  const end = useRef(null)
  useEffect(() => {
    if (isGrowing) end.current?.scrollIntoView?.({ block: 'nearest' })
  }, [events.length, isGrowing])
  return html`<ol class="events">
    ${events.map(
      ({ kind, data }, index) =>
        html`<li key=${index}>
          <p><span class="badge">${kind}</span> <${Text} of=${titleOf(data)} /></p>
          <pre class="scroll" tabindex="0"><${Text} of=${pretty(data)} /></pre>
        </li>`,
    )}
    <li class="end" ref=${end}>
      ${isGrowing ? 'more may come' : `${events.length} ${events.length === 1 ? 'event' : 'events'}`}
    </li>
  </ol>`
}

/** A body: JSON-RPC formatted, event streams by event. */
export function Body({ title, body, isGrowing = false }) {
  if (body === undefined) return null
  const events = eventsOf(body.text)
  return html`<div class="body">
    <h4>${title} <small>${body.bytes} bytes${body.text && !events ? `, ${titleOf(body.text)}` : ''}</small></h4>
    ${body.cut ? html`<p class="hint">${CUTS[body.cut]}</p>` : null}
    ${
      events
        ? html`<${Events} events=${events} isGrowing=${isGrowing} />`
        : body.text === ''
          ? html`<p class="hint">
              ${isGrowing ? 'It is shown when it is complete.' : body.bytes === 0 ? 'Empty.' : ''}
            </p>`
          : html`<pre class="scroll" tabindex="0"><${Text} of=${pretty(body.text)} /></pre>`
    }
  </div>`
}
