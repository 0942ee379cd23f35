import { html, useState } from './html.js'

/** For a POSIX shell: nothing in it means anything. */
const quoted = (text) => `'${String(text).replaceAll("'", String.raw`'\''`)}'`

/** Made by curl itself, or by what is between. */
const LEFT_OUT =
  /^(?:host|connection|content-length|transfer-encoding|accept-encoding|authorization|forwarded|x-forwarded-.*|sec-.*|origin|referer|cookie|te|keep-alive|expect|upgrade)$/

/** Where the proxy listens, as an address that can be asked. */
export const baseOf = (proxyUrl = globalThis.inspectedUrl ?? '') =>
  proxyUrl.startsWith('unix:')
    ? 'http://localhost'
    : proxyUrl.replace('//0.0.0.0', '//127.0.0.1').replace('//*', '//127.0.0.1')

/** The request as a command, with `$TOKEN` for the token and without masked headers. */
export function curlOf({ summary, received, requestBody }, proxyUrl = globalThis.inspectedUrl ?? '') {
  const isSocket = proxyUrl.startsWith('unix:')
  const parts = ['curl -sS', `-X ${/^[A-Z]+$/.test(summary.method) ? summary.method : quoted(summary.method)}`]
  if (isSocket) parts.push(`--unix-socket ${quoted(proxyUrl.slice('unix:'.length))}`)
  parts.push(quoted(baseOf(proxyUrl) + summary.target))
  for (const [name, value] of received.headers) {
    if (name === 'authorization') parts.push('-H "Authorization: Bearer $TOKEN"')
    else if (!LEFT_OUT.test(name) && !value.includes('[masked]')) parts.push(`-H ${quoted(`${name}: ${value}`)}`)
  }
  if (requestBody?.text) parts.push(`--data-raw ${quoted(requestBody.text)}`)
  return parts.join(' \\\n  ')
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}

/** A button that copies; where a browser does not let it, the text is shown to be copied by hand. */
export function Copy({ text, label }) {
  const [state, setState] = useState({ said: '', shown: '' })
  const onClick = async () => {
    const made = text()
    setState((await copy(made)) ? { said: 'Copied.', shown: made } : { said: 'Copy this:', shown: made })
  }
  return html`<span class="copy">
    <button type="button" onClick=${onClick}>${label}</button>
    <span role="status">${state.said}</span>
    ${state.shown ? html`<textarea class="command" readonly rows="6" aria-label=${label} value=${state.shown}></textarea>` : null}
  </span>`
}
