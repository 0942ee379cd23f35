import { SaveHar } from './har.js'
import { useFound } from './found.js'
import { outcomeClassOf, parseSearch, passes, suggestionsFor } from './filters.js'
import { durationOf, html, Pure, Text, timeOf, useEffect, useMemo, useRef } from './html.js'

function Search({ requests, search, setSearch, searchRef }) {
  const suggestions = useMemo(() => suggestionsFor(requests), [requests])
  // A suggestion replaces the whole field: what is before the last term stays.
  const before = search.slice(0, search.search(/\S*$/))
  return html`<form class="filters" role="search" aria-label="Filter requests" onSubmit=${(event) => event.preventDefault()}>
    <label class="grow">
      <span>Search</span>
      <input
        ref=${searchRef}
        type="search"
        name="search"
        maxlength="500"
        list="search-terms"
        autocomplete="off"
        spellcheck="false"
        value=${search}
        onInput=${(event) => setSearch(event.target.value)}
        placeholder="status:4xx route:NAME reason:CODE method:tools/call tool:NAME body:text or any word"
      />
    </label>
    <datalist id="search-terms">
      ${suggestions.map((term) => html`<option key=${term} value=${before + term} />`)}
    </datalist>
    <button type="button" disabled=${search === ''} onClick=${() => setSearch('')}>Clear filters</button>
  </form>`
}

/** A click anywhere on a line opens it, but for one that ends a selection of text. */
function opened(event, id) {
  if (event.target.closest('a') === null && String(getSelection()) === '') location.hash = `#/requests/${id}`
}

/** A row; its link opens the request. */
class Row extends Pure {
  render({ request, isCurrent }) {
    const { id, atMs, route, type, method, target, endpoint, rpcMethod, rpcName, caller, subject } = request
    const kind = outcomeClassOf(request)
    return html`<tr class=${`row s-${kind}`} onClick=${(event) => opened(event, id)} aria-current=${isCurrent ? 'true' : undefined}>
      <td class="time"><a href=${`#/requests/${id}`} data-row>${timeOf(atMs)}</a></td>
      <td class="route"><${Text} of=${route || endpoint || target} /> <small>${type}</small></td>
      <td class="what">
        <span class="verb">${method}</span> ${rpcMethod ? html`<${Text} of=${rpcMethod} />` : null} ${rpcName ? html`<strong><${Text} of=${rpcName} /></strong>` : null}
      </td>
      <td class="caller">${subject ? html`<${Text} of=${subject} />` : html`<code>${caller ?? ''}</code>`}</td>
      <td class="status"><span class="badge">${request.isOpen ? request.status || 'open' : request.status}</span></td>
      <td class="reason" title=${request.reason}><${Text} of=${request.reason} /></td>
      <td class="number attempts">
        ${request.attempts > 1 ? html`<abbr title="attempts">${request.attempts} ×</abbr>` : ''}
      </td>
      <td class="number duration">${request.isOpen ? 'open' : durationOf(request.durationMs)}</td>
    </tr>`
  }
}

/** Below this width a request takes the whole page, and the list is hidden. */
const NARROW = '(max-width: 60rem)'

/** Focuses a line, and opens its request beside the list. */
function select(link) {
  link.focus()
  if (!matchMedia(NARROW).matches) location.replace(link.hash)
}

/** Selects another line with the arrow keys. */
function moveFocus(event) {
  const links = [...event.currentTarget.querySelectorAll('a[data-row]')]
  const at = links.indexOf(document.activeElement)
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key]
  if (next === undefined || links.length === 0) return
  event.preventDefault()
  select(links[Math.min(Math.max(next, 0), links.length - 1)])
}

function countOf({ requests, dropped, isPaused, waiting }, shown) {
  const older = dropped > 0 ? `, ${dropped} older dropped` : ''
  const more = isPaused && waiting > 0 ? `, ${waiting} waiting` : ''
  return `${shown.length} of ${requests.length}${older}${more}`
}

/** The live list with its filters. */
export function RequestList({ live, search, setSearch, currentId }) {
  const { requests, isPaused, pause, clear } = live
  const searchRef = useRef(null)
  const wanted = useMemo(() => parseSearch(search), [search])
  const found = useFound(wanted.body, requests)
  const shown = useMemo(
    () => requests.filter((request) => passes(request, wanted, found)).toReversed(),
    [requests, wanted, found],
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
        if (link instanceof HTMLAnchorElement) select(link)
      }
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [isPaused, pause])
  return html`<section class="list" aria-label="Requests">
    <${Search} requests=${requests} search=${search} setSearch=${setSearch} searchRef=${searchRef} />
    <div class="bar">
      <button type="button" aria-pressed=${isPaused ? 'true' : 'false'} onClick=${() => pause(!isPaused)}>
        ${isPaused ? 'Resume' : 'Pause'}
      </button>
      <button type="button" onClick=${clear}>Clear</button>
      <${SaveHar} ids=${shown.map(({ id }) => id).toReversed()} />
      <span class="count" role="status">${countOf(live, shown)}</span>
      <span class="keys">Keys: ↑ ↓ to open, / to search, p to pause, Esc to close</span>
    </div>
    <div class="scroll" tabindex="0" role="region" aria-label="List of requests">
      <table class="lines" onKeyDown=${moveFocus}>
        <thead>
          <tr>
            <th scope="col" class="time">Time</th>
            <th scope="col" class="route">Route</th>
            <th scope="col" class="what">Request</th>
            <th scope="col" class="caller">Caller</th>
            <th scope="col" class="status">Status</th>
            <th scope="col" class="reason">Reason</th>
            <th scope="col" class="number attempts">Attempts</th>
            <th scope="col" class="number duration">Duration</th>
          </tr>
        </thead>
        <tbody>
          ${shown.map((request) => html`<${Row} key=${request.id} request=${request} isCurrent=${request.id === currentId} />`)}
        </tbody>
      </table>
      ${shown.length === 0 ? html`<p class="empty">${requests.length === 0 ? 'No request yet. Each one appears here as it comes.' : 'No request matches the search.'}</p>` : null}
    </div>
  </section>`
}
