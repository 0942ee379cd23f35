import { load } from './api.js'
import { baseOf } from './curl.js'
import { html, useState } from './html.js'

const AT_ONCE = 10

const lines = (headers) => headers.map(([name, value]) => ({ name, value }))
const valueOf = (headers, wanted) => headers.find(([name]) => name === wanted)?.[1] ?? ''

/** A request as an entry of an HTTP archive (HAR 1.2): request and response of the client, masked as displayed. */
export function entryOf({ summary, httpVersion, received, requestBody, responseBody, answer, why, marks }) {
  const { method, target, atMs, durationMs } = summary
  const version = `HTTP/${httpVersion}`
  const url = new URL(target, baseOf())
  const answered = answer.toClient?.headers ?? []
  const waitMs = Math.min(marks?.responded ?? durationMs, durationMs)
  return {
    startedDateTime: new Date(atMs).toISOString(),
    time: durationMs,
    request: {
      method,
      url: url.href,
      httpVersion: version,
      cookies: [],
      headers: lines(received.headers),
      queryString: lines([...url.searchParams]),
      ...(requestBody?.text
        ? { postData: { mimeType: valueOf(received.headers, 'content-type'), params: [], text: requestBody.text } }
        : {}),
      headersSize: -1,
      bodySize: requestBody?.bytes ?? -1,
    },
    response: {
      status: answer.toClient?.status ?? 0,
      statusText: '',
      httpVersion: version,
      cookies: [],
      headers: lines(answered),
      content: {
        size: responseBody?.bytes ?? 0,
        mimeType: valueOf(answered, 'content-type'),
        ...(responseBody?.text ? { text: responseBody.text } : {}),
      },
      redirectURL: valueOf(answered, 'location'),
      headersSize: -1,
      bodySize: responseBody?.bytes ?? -1,
    },
    cache: {},
    timings: { send: 0, wait: waitMs, receive: Math.max(0, durationMs - waitMs) },
    comment: [summary.id, summary.route, summary.reason, why?.cause].filter(Boolean).join(', '),
  }
}

/** An archive of requests; those that are not kept any more are left out. */
async function archiveOf(ids) {
  const entries = []
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const part = ids.slice(at, at + AT_ONCE).map((id) => load(`/requests/${id}`).catch(() => undefined))
    for (const request of await Promise.all(part)) if (request !== undefined) entries.push(entryOf(request))
  }
  const { version } = await load('/state')
  return { log: { version: '1.2', creator: { name: 'extauth', version }, entries } }
}

function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

/** A button that saves the requests with these ids. */
export function SaveHar({ ids }) {
  const [isBusy, setBusy] = useState(false)
  const onClick = async () => {
    setBusy(true)
    try {
      save(`extauth-${ids.length === 1 ? ids[0] : 'requests'}.har`, JSON.stringify(await archiveOf(ids), null, 2))
    } finally {
      setBusy(false)
    }
  }
  return html`<button type="button" disabled=${isBusy || ids.length === 0} onClick=${onClick}>Save as HAR</button>`
}
