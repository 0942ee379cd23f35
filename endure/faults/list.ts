import { GATE_MODES } from '../world/gate.ts'
import type { World } from '../world/world.ts'
import type { Part } from '../oracle/excuses.ts'
import type { Fault } from './fault.ts'
import { PROCESS_FAULTS } from './process.ts'

type GateName = keyof World['services']['gates']
type Settings = Parameters<World['services']['faults']['set']>[0]

const SHORT = [3_000, 9_000] as const
const BROKEN_MODES = GATE_MODES.filter((mode) => mode !== 'open')

/** A stretch of network, in each of its ways to be broken. */
const network = (what: string, gates: readonly GateName[], parts: readonly Part[]): Fault[] =>
  BROKEN_MODES.map((mode) => ({
    name: `network to ${what} ${mode}`,
    parts,
    lastsMs: SHORT,
    begin: ({ services }) => {
      for (const gate of gates) services.gates[gate].set(mode)
      return Promise.resolve(() => {
        for (const gate of gates) services.gates[gate].set('open')
      })
    },
  }))

/** A service that is reached and behaves badly. */
const service = (
  name: string,
  parts: readonly Part[],
  on: Settings,
  off: Settings,
  lastsMs: Fault['lastsMs'] = SHORT,
): Fault => ({
  name,
  parts,
  lastsMs,
  begin: ({ services }) => {
    services.faults.set(on)
    return Promise.resolve(() => services.faults.set(off))
  },
})

const TROUBLES = ['slow', 'throttled', 'broken'] as const
type Trouble = (typeof TROUBLES)[number]
const exchange = (mode: Trouble): Fault =>
  service(`exchange ${mode}`, ['provider'], { exchange: mode, slowMs: 3_000 }, { exchange: 'none' })
const introspection = (mode: Trouble): Fault =>
  service(`introspection ${mode}`, ['introspection'], { introspection: mode, slowMs: 3_000 }, { introspection: 'none' })
const sts = (mode: Trouble): Fault => service(`STS ${mode}`, ['sts'], { sts: mode, slowMs: 3_000 }, { sts: 'none' })

/** A momentary fault: later credentials are valid. The product fetches others, and callers notice nothing. */
const revoking = (what: 'exchange' | 'sts', parts: readonly Part[]): Fault =>
  service(`${what} takes back what it issued`, parts, { [what]: 'revoking' }, { [what]: 'none' }, [1_000, 1_000])

/** The token endpoint refuses the proxy's own client for load, so long that its token ends; what it exchanges for callers is none of that. */
const ownClientThrottled = service(
  'own client throttled',
  ['own token'],
  { clientCredentials: 'throttled', retryAfterSeconds: 5 },
  { clientCredentials: 'none', retryAfterSeconds: 2 },
  [18_000, 20_000],
)

const STORE: readonly Part[] = ['store', 'own server']

const storeNetwork = (mode: 'down' | 'silent'): Fault => ({
  name: `network to Redis ${mode}`,
  parts: STORE,
  lastsMs: SHORT,
  begin: ({ store }) => {
    store.setNetwork(mode)
    return Promise.resolve(() => store.setNetwork('open'))
  },
})

/** Everything that a run draws from. */
export const FAULTS: readonly Fault[] = [
  ...network('the identity provider', ['identity', 'identityTls'], ['provider', 'introspection']),
  ...network('STS', ['sts'], ['sts']),
  ...network('the workspace', ['workspace'], ['workspace']),
  ...network('the backend', ['backend'], ['backend']),
  ...TROUBLES.flatMap((mode) => [exchange(mode), introspection(mode), sts(mode)]),
  ownClientThrottled,
  revoking('exchange', []),
  revoking('sts', ['own keys', 'hub keys']),
  storeNetwork('down'),
  storeNetwork('silent'),
  ...PROCESS_FAULTS,
]
