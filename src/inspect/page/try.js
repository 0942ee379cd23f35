import { load } from './api.js'
import { html, Text, useEffect, useRef, useState } from './html.js'
import { LabUser, whoOf } from './lab-user.js'
import { REVISIONS, McpClient } from './mcp.js'
import { maskedAnswer, NOT_KEPT } from './masked.js'
import { Outcome } from './outcome.js'
import { parameterHeaders } from './protocol.js'
import { SchemaForm } from './schema-form.js'

const KINDS = [
  { kind: 'tools', title: 'Tools', method: 'tools/call', verb: 'Call' },
  { kind: 'resources', title: 'Resources', method: 'resources/read', verb: 'Read' },
  { kind: 'prompts', title: 'Prompts', method: 'prompts/get', verb: 'Get' },
]

const schemaOf = ({ kind, item }) =>
  kind === 'tools'
    ? item.inputSchema
    : {
        required: (item.arguments ?? []).filter(({ required }) => required).map(({ name }) => name),
        properties: Object.fromEntries(
          (item.arguments ?? []).map(({ name, description }) => [name, { type: 'string', description }]),
        ),
      }

const paramsOf = ({ kind, item }, args) =>
  kind === 'resources' ? { uri: item.uri } : { name: item.name, arguments: args }

/** Target, user and protocol revision of a trial. */
function Target({ routes, users, isBusy, onConnect }) {
  const [form, setForm] = useState({ route: '', revision: REVISIONS[0], user: '', token: '' })
  const route = form.route || (routes[0]?.name ?? '')
  const set = (name) => (event) => setForm({ ...form, [name]: event.target.value })
  const submit = (event) => {
    event.preventDefault()
    onConnect(route, form.revision, whoOf(form))
  }
  return html`<form class="target" onSubmit=${submit} aria-label="What to try" autocomplete="off">
    <label
      ><span>Route</span>
      <select name="route" value=${route} onChange=${set('route')}>
        ${routes.map(({ name, path, type }) => html`<option key=${name} value=${name} selected=${name === route}>${name} (${path}, ${type})</option>`)}
      </select>
    </label>
    <label
      ><span>Protocol</span>
      <select name="revision" value=${form.revision} onChange=${set('revision')}>
        ${REVISIONS.map((revision) => html`<option key=${revision} value=${revision} selected=${revision === form.revision}>${revision}${revision === REVISIONS[0] ? ' (stateless)' : ' (sessions)'}</option>`)}
      </select>
    </label>
    <${LabUser} users=${users} user=${form.user} onChange=${set('user')} />
    <label class="grow"
      ><span>Token</span>
      <input
        type="password"
        name="token"
        value=${form.token}
        onInput=${set('token')}
        autocomplete="off"
        spellcheck="false"
        placeholder=${users ? 'instead of a lab user' : 'kept by this page only'}
      />
    </label>
    <button type="submit" class="main" disabled=${isBusy || route === ''}>Connect</button>
  </form>`
}

function Choices({ lists, chosen, onChoose }) {
  return html`<nav class="choices" aria-label="What the server offers">
    ${KINDS.map(
      ({ kind, title }) =>
        html`<section key=${kind}>
          <h3>${title} <small>${lists[kind].length}</small></h3>
          <ul class="plain">
            ${lists[kind].map((item, index) => {
              const isChosen = chosen?.kind === kind && chosen.item === item
              return html`<li key=${index}>
                <button
                  type="button"
                  class="choice"
                  aria-pressed=${isChosen ? 'true' : 'false'}
                  onClick=${() => onChoose({ kind, item })}
                >
                  <${Text} of=${item.name ?? item.uri} />
                </button>
              </li>`
            })}
          </ul>
        </section>`,
    )}
  </nav>`
}

const IDLE = { isBusy: false, notes: [], result: undefined, error: undefined, requestId: undefined, masked: undefined }

/** The location depends on the revision. */
const serverName = ({ server, route }) =>
  (server.serverInfo ?? server._meta?.['io.modelcontextprotocol/serverInfo'])?.name ?? route

/** Tries a route as an MCP client would: connects, lists, calls. */
export function TryView({ users }) {
  const [routes, setRoutes] = useState([])
  const [connected, setConnected] = useState(undefined)
  const [chosen, setChosen] = useState(undefined)
  const [outcome, setOutcome] = useState(undefined)
  const cancel = useRef(undefined)
  useEffect(() => void load('/overview').then((overview) => setRoutes(overview.routes)), [])
  useEffect(() => () => cancel.current?.abort(), [])
  useEffect(() => () => void connected?.client.close(), [connected])

  const run = async (work, client) => {
    cancel.current?.abort()
    const controller = new AbortController()
    cancel.current = controller
    let state = { ...IDLE, isBusy: true, user: client.user }
    const show = (change) => {
      state = { ...state, ...change }
      if (cancel.current === controller) setOutcome(state)
    }
    show({})
    try {
      const result = await work(controller.signal, (note) => show({ notes: [...state.notes, note].slice(-200) }))
      show({ isBusy: false, result, requestId: client.lastRequestId })
    } catch (error) {
      const shown = controller.signal.aborted ? { message: 'Cancelled.', said: '' } : error
      show({ isBusy: false, error: shown, requestId: error.requestId ?? client.lastRequestId })
    }
    show({ masked: state.requestId === undefined ? NOT_KEPT : await maskedAnswer(state.requestId) })
  }
  const connect = (route, revision, who) => {
    const client = new McpClient(route, revision, who)
    setConnected(undefined)
    setChosen(undefined)
    void run(async (signal) => {
      const server = await client.connect(signal)
      const lists = {}
      for (const { kind } of KINDS) lists[kind] = await client.list(kind, signal)
      setConnected({ client, server, lists, route })
      return server
    }, client)
  }
  const call = (args) => {
    const { method } = KINDS.find(({ kind }) => kind === chosen.kind)
    const { client } = connected
    const headers = chosen.kind === 'tools' ? parameterHeaders(chosen.item.inputSchema, args) : {}
    void run(
      (signal, onNotification) =>
        client.request(method, paramsOf(chosen, args), { signal, onNotification, headers, progress: true }),
      client,
    )
  }
  const name = chosen && (chosen.item.name ?? chosen.item.uri)
  return html`<div class="try">
    <h2>Try a route</h2>
    <${Target} routes=${routes} users=${users} isBusy=${outcome?.isBusy ?? false} onConnect=${connect} />
    <p class="hint">
      What is sent goes through the proxy like any request, and is in the list. A token stays in this page until it is
      closed.
    </p>
    <div class="columns">
      ${
        connected
          ? html`<${Choices}
              lists=${connected.lists}
              chosen=${chosen}
              onChoose=${(next) => {
                setChosen(next)
                setOutcome(undefined)
              }}
            />`
          : null
      }
      <div class="chosen">
        ${
          chosen
            ? html`<section aria-label="Chosen">
                <h3><${Text} of=${name} /></h3>
                ${chosen.item.description ? html`<p><${Text} of=${chosen.item.description} /></p>` : null}
                <${SchemaForm}
                  key=${`${chosen.kind} ${name}`}
                  schema=${schemaOf(chosen)}
                  label=${KINDS.find(({ kind }) => kind === chosen.kind).verb}
                  isBusy=${outcome?.isBusy ?? false}
                  onSubmit=${call}
                />
              </section>`
            : connected
              ? html`<p class="hint">
                  Connected to <${Text} of=${serverName(connected)} />. Choose something to call.
                </p>`
              : null
        }
        ${outcome ? html`<${Outcome} outcome=${outcome} onCancel=${() => cancel.current?.abort()} />` : null}
      </div>
    </div>
  </div>`
}
