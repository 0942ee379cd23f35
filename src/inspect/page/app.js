import { load, logIn } from './api.js'
import { CacheView } from './cache.js'
import { ConfigView } from './config.js'
import { RequestDetail } from './detail.js'
import { html, render, useEffect, useState } from './html.js'
import { RequestList } from './list.js'
import { useLive } from './live.js'
import { Overview } from './overview.js'
import { TryView } from './try.js'

const VIEWS = [
  ['requests', 'Requests'],
  ['try', 'Try'],
  ['overview', 'Overview'],
  ['cache', 'Cache'],
  ['config', 'Configuration'],
]
/** The search is kept as long as the tab. */
const SEARCH = 'extauth-inspect-search'
const CONNECTIONS = { live: 'live', waiting: 'connecting …', closed: 'not connected' }

function placeOf(hash) {
  const [, view = 'requests', id = ''] = /^#\/(\w+)(?:\/([\w-]+))?/.exec(hash) ?? []
  return { view: VIEWS.some(([name]) => name === view) ? view : 'requests', id }
}

function usePlace() {
  const [place, setPlace] = useState(() => placeOf(location.hash))
  useEffect(() => {
    const onChange = () => setPlace(placeOf(location.hash))
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return place
}

/** Login with the admin token, which browsers don't send automatically. */
function Login({ onDone }) {
  const [token, setToken] = useState('')
  const [error, setError] = useState('')
  const submit = async (event) => {
    event.preventDefault()
    try {
      await logIn(token.trim())
      onDone()
    } catch (failure) {
      setError(failure.status === 401 ? 'This is not the admin token.' : failure.message)
    }
    setToken('')
  }
  return html`<main class="login">
    <h1>extauth inspector</h1>
    <p>
      Paste the admin token, the content of <code>admin.tokenFile</code>. It opens a session of eight hours in this
      browser.
    </p>
    <form onSubmit=${submit} aria-label="Log in">
      <label
        ><span>Admin token</span
        ><input
          type="password"
          name="token"
          autocomplete="off"
          value=${token}
          onInput=${(event) => setToken(event.target.value)}
      /></label>
      <button type="submit" class="main">Open</button>
    </form>
    ${error ? html`<p role="alert">${error}</p>` : null}
  </main>`
}

function App() {
  const [state, setState] = useState(undefined)
  const [error, setError] = useState(undefined)
  const [search, setSearch] = useState(() => sessionStorage.getItem(SEARCH) ?? '')
  useEffect(() => sessionStorage.setItem(SEARCH, search), [search])
  const { view, id } = usePlace()
  const live = useLive(state !== undefined)
  const start = () => {
    setError(undefined)
    void load('/state').then((loaded) => {
      globalThis.inspectedUrl = loaded.proxyUrl
      setState(loaded)
    }, setError)
  }
  useEffect(start, [])
  if (error?.status === 401) return html`<${Login} onDone=${start} />`
  if (error !== undefined) return html`<main><p role="alert">${error.message}</p></main>`
  if (state === undefined) return html`<main><p>Loading …</p></main>`
  const close = () => {
    location.hash = '#/requests'
  }
  return html`<div class="page">
    <header class="top">
      <h1>extauth inspector</h1>
      <nav aria-label="Views">
        ${VIEWS.map(([name, title]) => html`<a key=${name} href=${`#/${name}`} aria-current=${name === view ? 'page' : undefined}>${title}</a>`)}
      </nav>
      <p class="state">
        <span class=${`dot d-${live.connection}`} aria-hidden="true"></span>
        ${`${CONNECTIONS[live.connection]}, ${state.mode}, ${state.version}`}
      </p>
    </header>
    <main class=${`view v-${view} ${view === 'requests' && id !== '' ? 'with-request' : ''}`}>
      ${
        view === 'requests'
          ? html`<${RequestList} live=${live} search=${search} setSearch=${setSearch} currentId=${id} />
              ${id === '' ? null : html`<${RequestDetail} key=${id} id=${id} users=${state.users} onClose=${close} />`}`
          : null
      }
      ${view === 'try' ? html`<${TryView} users=${state.users} />` : null}
      ${view === 'overview' ? html`<${Overview} changes=${live.requests} />` : null}
      ${view === 'cache' ? html`<${CacheView} />` : null} ${view === 'config' ? html`<${ConfigView} />` : null}
    </main>
  </div>`
}

render(html`<${App} />`, document.getElementById('app'))
