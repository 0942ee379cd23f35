import { load, remove } from './api.js'
import { html, Text, useEffect, useState } from './html.js'

const FILTERS = [
  ['config', 'Configuration'],
  ['issuer', 'Issuer'],
  ['role', 'Role'],
  ['subject', 'Subject'],
]
/** The safe choice has the focus. */
const focus = (button) => button?.focus()
const EMPTY = { config: '', issuer: '', role: '', subject: '' }

/** Cached credentials in groups, and their purge. */
export function CacheView() {
  const [listing, setListing] = useState(undefined)
  const [said, setSaid] = useState('')
  const [form, setForm] = useState(EMPTY)
  const [isAsking, setAsking] = useState(false)
  const look = () => load('/cache').then(setListing, (error) => setSaid(error.message))
  useEffect(() => void look(), [])
  const purge = async (filters) => {
    const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ''))
    try {
      const { purged, detail } = await remove(`/cache${query.size === 0 ? '' : `?${query}`}`)
      setSaid(
        `${purged} ${purged === 1 ? 'credential' : 'credentials'} purged.${detail === undefined ? '' : ` But ${detail}.`}`,
      )
    } catch (error) {
      setSaid(error.message)
    }
    await look()
  }
  const purgeAll = () => {
    setAsking(false)
    void purge(EMPTY)
  }
  const isAll = Object.values(form).every((value) => value === '')
  return html`<div class="cache">
    <h2>Cache of credentials</h2>
    <p class="actions"><button type="button" onClick=${look}>Refresh</button> <span role="status">${said}</span></p>
    ${listing ? html`<p>${listing.entries} cached (max ${listing.maxEntries}), ${listing.inFlight} in flight, ${listing.negative} cached ${listing.negative === 1 ? 'failure' : 'failures'}</p>` : html`<p>Loading …</p>`}
    <div class="scroll" tabindex="0" role="region" aria-label="Cached credentials">
      <table>
        <thead>
          <tr>
            <th scope="col">Configuration</th>
            <th scope="col">Type</th>
            <th scope="col">Issuer</th>
            <th scope="col">Role</th>
            <th scope="col" class="number">Count</th>
            <th scope="col" class="number">Age</th>
            <th scope="col" class="number">Next expiry</th>
            <th scope="col">Purge</th>
          </tr>
        </thead>
        <tbody>
          ${(listing?.groups ?? []).map(
            ({ config, type, issuer, role, count, oldestAgeSeconds, newestAgeSeconds, soonestEndSeconds }, index) =>
              html`<tr key=${index}>
                <th scope="row"><${Text} of=${config} /></th>
                <td>${type}</td>
                <td><${Text} of=${issuer === '' ? 'none: the proxy’s own' : issuer} /></td>
                <td><${Text} of=${role ?? ''} /></td>
                <td class="number">${count}</td>
                <td class="number">
                  ${newestAgeSeconds === oldestAgeSeconds ? `${oldestAgeSeconds} s` : `${newestAgeSeconds} to ${oldestAgeSeconds} s`}
                </td>
                <td class="number">${soonestEndSeconds} s</td>
                <td>
                  <button
                    type="button"
                    aria-label=${`Purge ${config} ${role ?? ''}`}
                    onClick=${() => purge({ config, ...(issuer === '' ? {} : { issuer }), ...(role === undefined ? {} : { role }) })}
                  >
                    Purge
                  </button>
                </td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <form
      class="filters"
      aria-label="Purge"
      onSubmit=${(event) => {
        event.preventDefault()
        if (isAll) setAsking(true)
        else void purge(form)
      }}
    >
      ${FILTERS.map(([name, label]) => html`<label key=${name}><span>${label}</span><input name=${name} value=${form[name]} onInput=${(event) => setForm({ ...form, [name]: event.target.value })} /></label>`)}
      <button type="submit">${isAll ? 'Purge all …' : 'Purge matching'}</button>
    </form>
    ${
      isAsking
        ? html`<div class="actions" role="alertdialog" aria-label="Purge all credentials?">
            <strong>Purge all ${listing?.entries ?? ''} credentials? Each caller's next request fetches a new one.</strong>
            <button type="button" class="main" onClick=${purgeAll}>Purge all</button>
            <button type="button" ref=${focus} onClick=${() => setAsking(false)}>Cancel</button>
          </div>`
        : null
    }
  </div>`
}
