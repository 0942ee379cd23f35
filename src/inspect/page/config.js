import { load } from './api.js'
import { html, Text, useEffect, useState } from './html.js'

/** The effective configuration, secrets by reference. */
export function ConfigView() {
  const [text, setText] = useState('Loading …')
  useEffect(
    () =>
      void load('/config').then(
        (config) => setText(JSON.stringify(config, null, 2)),
        (error) => setText(error.message),
      ),
    [],
  )
  return html`<div class="config">
    <h2>Effective configuration</h2>
    <pre class="scroll" tabindex="0"><${Text} of=${text} /></pre>
  </div>`
}
