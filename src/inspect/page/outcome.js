import { pretty } from './bodies.js'
import { html, Text, useEffect, useState } from './html.js'
import { connectPromptIn } from './mcp.js'

/** Content of a result as text; images and audio only by type and size, because server content is never embedded. */
function Content({ result }) {
  const blocks = result.content ?? result.contents ?? result.messages?.map(({ content }) => content) ?? []
  const list = [blocks].flat().filter((block) => typeof block === 'object' && block !== null)
  return html`<div class="content">
    ${list.map((block, index) => {
      const text = block.text ?? block.resource?.text
      if (typeof text === 'string')
        return html`<pre key=${index} class="scroll" tabindex="0"><${Text} of=${text} /></pre>`
      const data = block.data ?? block.blob ?? block.resource?.blob
      const size = typeof data === 'string' ? `, ${data.length} characters of base64` : ''
      return html`<p key=${index} class="hint">
        <${Text} of=${`${block.type ?? 'resource'} ${block.mimeType ?? block.uri ?? ''}${size}`} />
      </p>`
    })}
  </div>`
}

/** The part that may be shown: masked as in the inspector, or on request as received. */
function shownOf({ masked, result, notes, error }, isOpen) {
  if (isOpen) return { result, notes, error: error?.message }
  // Our own words hold nothing of what was sent.
  if (error !== undefined && (error.said === '' || masked?.isOurs)) return { notes: [], error: error.message }
  if (masked === undefined) return { notes: [] }
  if (error === undefined) return { result: masked.result, notes: masked.notes, text: masked.text }
  return { notes: masked.notes, error: error.message.replace(error.said, () => masked.said || '…') }
}

/** Where the user of the trial connects an account. */
function ConnectPrompt({ prompt, user }) {
  return html`<div class="prompted">
    <p><${Text} of=${prompt.message} /></p>
    <p>
      <a class="main" href=${prompt.url} target="_blank" rel="noopener noreferrer">
        Connect the account of ${user ? html`<${Text} of=${user} />` : 'this caller'}
      </a>
    </p>
    <p class="hint">The link is valid for ten minutes, and for this caller only. Afterwards connect again here.</p>
  </div>`
}

function statusOf({ isBusy, error, result }, prompt) {
  if (isBusy) return 'In progress …'
  if (prompt) return 'Not connected: the route needs an account of its caller.'
  if (error) return 'It failed.'
  if (result?.isError) return 'The tool says that it failed.'
  return result?.resultType === 'input_required'
    ? 'The server asks for more, which this page does not answer.'
    : 'Done.'
}

/** The result of a trial request. Secrets of the request are masked until revealed. */
export function Outcome({ outcome, onCancel }) {
  const [isOpen, setOpen] = useState(false)
  const { isBusy, requestId, masked } = outcome
  useEffect(() => setOpen(false), [requestId])
  const { result, notes, error, text } = shownOf(outcome, isOpen)
  const progress = (isBusy ? outcome.notes : notes).findLast(
    ({ method }) => method === 'notifications/progress',
  )?.params
  const prompt = isBusy ? undefined : connectPromptIn(outcome)
  return html`<section class="outcome" aria-label="Outcome">
    <h3>Outcome</h3>
    <p role="status">
      ${statusOf(outcome, prompt)}
    </p>
    ${isBusy ? html`<button type="button" onClick=${onCancel}>Cancel</button>` : null}
    ${progress ? html`<p><progress value=${progress.progress} max=${progress.total ?? undefined} aria-label="Progress"></progress> <${Text} of=${(isBusy ? undefined : progress.message) ?? `${progress.progress}${progress.total ? ` of ${progress.total}` : ''}`} /></p>` : null}
    ${prompt ? html`<${ConnectPrompt} prompt=${prompt} user=${outcome.user} />` : null}
    ${error && !prompt ? html`<pre class="error scroll" tabindex="0" role="alert"><${Text} of=${error} /></pre>` : null}
    ${!isOpen && masked?.isKept === false && !error ? html`<p class="hint">What came is not kept here, so that nothing in it is masked.</p>` : null}
    ${text ? html`<pre class="scroll" tabindex="0"><${Text} of=${text} /></pre>` : null}
    ${
      outcome.result !== undefined || outcome.error?.said
        ? html`<button type="button" aria-pressed=${isOpen ? 'true' : 'false'} onClick=${() => setOpen(!isOpen)}>
            ${isOpen ? 'Mask secrets' : 'Show as it came'}
          </button>`
        : null
    }
    ${result ? html`<${Content} result=${result} />` : null}
    ${
      notes.length > 0
        ? html`<details>
            <summary>${notes.length} ${notes.length === 1 ? 'notification' : 'notifications'}</summary>
            <pre
              class="scroll"
              tabindex="0"
            ><${Text} of=${notes.map((note) => JSON.stringify(note)).join('\n')} /></pre>
          </details>`
        : null
    }
    ${
      result
        ? html`<details>
            <summary>Result as JSON</summary>
            <pre class="scroll" tabindex="0"><${Text} of=${pretty(JSON.stringify(result))} /></pre>
          </details>`
        : null
    }
    ${requestId ? html`<p><a href=${`#/requests/${requestId}`}>The request, as the proxy saw it</a></p>` : null}
  </section>`
}
