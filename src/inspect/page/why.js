import { html, Text } from './html.js'

/** Why a request failed, in one box: what came and what was wanted, whose turn it is, and what to do. */
export function WhyPart({ summary, why }) {
  if (why === undefined) return null
  const { reason, who, cause, remedy, compared } = why
  const names = compared ? [...new Set([...Object.keys(compared.came), ...Object.keys(compared.wanted)])] : []
  return html`<section class="part why" aria-label=${`Why ${summary.status}?`}>
    <h3>Why ${summary.status}?</h3>
    <p><strong><${Text} of=${reason} /></strong>: <${Text} of=${cause} />.</p>
    ${
      names.length === 0
        ? null
        : html`<div class="scroll" tabindex="0" role="region" aria-label="What came, and what was wanted">
            <table class="compared">
              <thead>
                <tr>
                  <th scope="col"><span class="unseen">Name</span></th>
                  <th scope="col">Came</th>
                  <th scope="col">Wanted</th>
                </tr>
              </thead>
              <tbody>
                ${names.map(
                  (name) =>
                    html`<tr key=${name}>
                      <th scope="row"><code>${name}</code></th>
                      <td><${Text} of=${compared.came[name] ?? '–'} /></td>
                      <td><${Text} of=${compared.wanted[name] ?? ''} /></td>
                    </tr>`,
                )}
              </tbody>
            </table>
          </div>`
    }
    <p>To do, for ${who}: <${Text} of=${remedy} /></p>
  </section>`
}
