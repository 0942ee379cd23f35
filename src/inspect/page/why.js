import { html, Text } from './html.js'

/** Why a request failed, in one box: reason, cause, values received and expected, who acts, and what only the log has. */
export function ErrorBox({ summary, why, detail }) {
  const reason = why?.reason ?? summary.reason
  if (why === undefined && !detail) return null
  const compared = why?.compared
  const names = compared ? [...new Set([...Object.keys(compared.came), ...Object.keys(compared.wanted)])] : []
  return html`<section class="part why" aria-label="Error">
    <h3>Error: ${summary.status || 'no status'}${reason ? html` <${Text} of=${reason} />` : null}</h3>
    <dl>
      ${
        why === undefined
          ? null
          : html`<div>
                <dt>Cause</dt>
                <dd><${Text} of=${why.cause} /></dd>
              </div>
              <div>
                <dt>Fix (${why.who})</dt>
                <dd><${Text} of=${why.remedy} /></dd>
              </div>`
      }
      ${
        detail
          ? html`<div>
              <dt>Detail (log only)</dt>
              <dd><${Text} of=${detail} /></dd>
            </div>`
          : null
      }
    </dl>
    ${
      names.length === 0
        ? null
        : html`<div class="scroll" tabindex="0" role="region" aria-label="Received and expected">
            <table class="compared">
              <thead>
                <tr>
                  <th scope="col"><span class="unseen">Name</span></th>
                  <th scope="col">Received</th>
                  <th scope="col">Expected</th>
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
  </section>`
}

const PROBLEMS = {
  missing: 'The caller has not connected an account.',
  ended: 'The service ended the connection, or rejected its credential.',
  insufficient_scope: 'The backend requires more scopes than the account granted.',
}

/** The caller was asked to connect an account: the request did not fail. */
export function NotConnected({ connection, why }) {
  return html`<section class="part prompted" aria-label="Not connected">
    <h3>Not connected: <${Text} of=${connection.provider} /></h3>
    <dl>
      <div>
        <dt>Cause</dt>
        <dd>${PROBLEMS[connection.problem]}</dd>
      </div>
      <div>
        <dt>Next (${why.who})</dt>
        <dd>The response holds a link for this caller. <a href="#/try">Try</a> shows the link of a user.</dd>
      </div>
    </dl>
  </section>`
}
