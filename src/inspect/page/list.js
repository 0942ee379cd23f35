import { SaveHar } from './har.js'
import { useFound } from './found.js'
import { choicesOf, NO_FILTERS, passes, statusClassOf } from './filters.js'
import { durationOf, html, Pure, Text, timeOf, useEffect, useMemo, useRef } from './html.js'

const SELECTS = [
  ['route', 'Route'],
  ['status', 'Status'],
  ['reason', 'Reason'],
  ['rpcMethod', 'JSON-RPC method'],
  ['rpcName', 'Tool'],
]

function Filters({ requests, filters, setFilters, searchRef }) {
  const choices = useMemo(() => choicesOf(requests), [requests])
  const set = (name) => (event) => setFilters({ ...filters, [name]: event.target.value })
  return html`<form
    class="filters"
    role="search"
    aria-label="Filter requests"
    onSubmit=${(event) => event.preventDefault()}
  >
    ${SELECTS.map(([name, label]) => {
      const values =
        choices[name].includes(filters[name]) || filters[name] === ''
          ? choices[name]
          : [...choices[name], filters[name]]
      return html`<label key=${name}>
        <span>${label}</span>
        <select name=${name} value=${filters[name]} onChange=${set(name)}>
          <option value="">all</option>
          ${values.map((value) => html`<option key=${value} value=${value} selected=${value === filters[name]}>${value}</option>`)}
        </select>
      </label>`
    })}
    <label class="grow">
      <span>Text</span>
      <input
        ref=${searchRef}
        type="search"
        name="text"
        value=${filters.text}
        onInput=${set('text')}
        placeholder="any word"
      />
    </label>
    <label class="grow">
      <span>In bodies</span>
      <input type="text" name="body" maxlength="200" value=${filters.body} onInput=${set('body')} placeholder="as shown, masked" />
    </label>
    <button
      type="button"
      disabled=${Object.values(filters).every((value) => value === '')}
      onClick=${() => setFilters(NO_FILTERS)}
    >
      Show all
    </button>
  </form>`
}

/** A click anywhere on a line opens it, but for one that ends a selection of text. */
function opened(event, id) {
  if (event.target.closest('a') === null && String(getSelection()) === '') location.hash = `#/requests/${id}`
}

/** One line; the address in it opens the request. */
class Row extends Pure {
  render({ request, isCurrent }) {
    const { id, atMs, route, type, method, target, endpoint, rpcMethod, rpcName, caller, subject } = request
    const kind = statusClassOf(request)
    return html`<tr class=${`row s-${kind}`} onClick=${(event) => opened(event, id)} aria-current=${isCurrent ? 'true' : undefined}>
      <td class="time"><a href=${`#/requests/${id}`} data-row>${timeOf(atMs)}</a></td>
      <td class="route"><${Text} of=${route || endpoint || target} /> <small>${type}</small></td>
      <td class="what">
        <span class="verb">${method}</span> ${rpcMethod ? html`<${Text} of=${rpcMethod} />` : null} ${rpcName ? html`<strong><${Text} of=${rpcName} /></strong>` : null}
      </td>
      <td class="caller">${subject ? html`<${Text} of=${subject} />` : html`<code>${caller ?? ''}</code>`}</td>
      <td class="status"><span class="badge">${request.isOpen ? request.status || 'open' : request.status}</span></td>
      <td class="reason"><${Text} of=${request.reason} /></td>
      <td class="number attempts">
        ${request.attempts > 1 ? html`<abbr title="attempts">${request.attempts} ×</abbr>` : ''}
      </td>
      <td class="number">${request.isOpen ? 'open' : durationOf(request.durationMs)}</td>
    </tr>`
  }
}

/** Moves to another line with the arrow keys; returns whether the key meant that. */
function moveFocus(event) {
  const links = [...event.currentTarget.querySelectorAll('a[data-row]')]
  const at = links.indexOf(document.activeElement)
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key]
  if (next === undefined || links.length === 0) return
  event.preventDefault()
  links[Math.min(Math.max(next, 0), links.length - 1)].focus()
}

function countOf({ requests, dropped, isPaused, waiting }, shown) {
  const older = dropped > 0 ? `, ${dropped} older dropped` : ''
  const more = isPaused && waiting > 0 ? `, ${waiting} waiting` : ''
  return `${shown.length} of ${requests.length}${older}${more}`
}

/** The live list with its filters. */
export function RequestList({ live, filters, setFilters, currentId }) {
  const { requests, isPaused, pause, clear } = live
  const searchRef = useRef(null)
  const found = useFound(filters.body, requests)
  const shown = useMemo(
    () => requests.filter((request) => passes(request, filters, found)).toReversed(),
    [requests, filters, found],
  )
  useEffect(() => {
    const onKey = (event) => {
      const isTyping = /^(?:INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping) return
      if (event.key === '/') {
        event.preventDefault()
        searchRef.current?.focus()
      } else if (event.key === 'p') pause(!isPaused)
      else if (/^Arrow(?:Down|Up)$/.test(event.key) && event.target === document.body) {
        // Nothing is chosen yet: the request that is open, or the newest, is.
        event.preventDefault()
        const current = document.querySelector('tr[aria-current] a[data-row]')
        const link = current ?? document.querySelector('a[data-row]')
        if (link instanceof HTMLElement) link.focus()
      }
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [isPaused, pause])
  return html`<section class="list" aria-label="Requests">
    <${Filters} requests=${requests} filters=${filters} setFilters=${setFilters} searchRef=${searchRef} />
    <div class="bar">
      <button type="button" aria-pressed=${isPaused ? 'true' : 'false'} onClick=${() => pause(!isPaused)}>
        ${isPaused ? 'Go on' : 'Pause'}
      </button>
      <button type="button" onClick=${clear}>Clear</button>
      <${SaveHar} ids=${shown.map(({ id }) => id).toReversed()} />
      <span class="count" role="status">${countOf(live, shown)}</span>
      <span class="keys">Keys: ↑ ↓ Enter, / to search, p to pause, Esc to close</span>
    </div>
    <div class="scroll" tabindex="0" role="region" aria-label="List of requests">
      <table class="lines" onKeyDown=${moveFocus}>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Route</th>
            <th scope="col">Request</th>
            <th scope="col">Caller</th>
            <th scope="col">Status</th>
            <th scope="col">Reason</th>
            <th scope="col" class="number">Tries</th>
            <th scope="col" class="number">Time taken</th>
          </tr>
        </thead>
        <tbody>
          ${shown.map((request) => html`<${Row} key=${request.id} request=${request} isCurrent=${request.id === currentId} />`)}
        </tbody>
      </table>
      ${shown.length === 0 ? html`<p class="empty">${requests.length === 0 ? 'No request yet. Each one appears here as it comes.' : 'No request passes the filters.'}</p>` : null}
    </div>
  </section>`
}
