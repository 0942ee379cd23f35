import { type Asked, ask, type Caller } from './caller.ts'
import { LISTED } from '../world/registry.ts'
import { initialize, initialized, legacyCall, type ToolCall, modernCall } from './messages.ts'

/** What a caller does from its first request to its last. */
export type Life = (caller: Caller) => Promise<void>

const KIB = 1024
const SIMPLE_TEXT = 'This is a simple text response for testing.'

const thinks = ({ around, random }: Caller): Promise<void> => around.think(random.between(200, 5_000))

/** Ids are drawn, so that no two callers have the same. */
const nameOf = ({ name, random }: Caller): string => `${name}-${random.between(0, 0xffffff).toString(36)}`

/** A tool with what it must answer, of all kinds: short, in steps, large, with a large request. */
function anyTool(caller: Caller): { readonly call: ToolCall; readonly told: Asked['told'] } {
  const { random } = caller
  const id = nameOf(caller)
  switch (random.between(0, 6)) {
    case 0: {
      const steps = random.between(2, 12)
      const given = { steps, intervalMs: random.between(20, 800) }
      return {
        call: { id, tool: 'stream_progress', arguments: given, wantsProgress: true },
        told: { kind: 'steps', steps },
      }
    }
    case 1: {
      const bytes = random.between(1, 512 * KIB)
      return { call: { id, tool: 'large_result', arguments: { bytes } }, told: { kind: 'bytes', bytes } }
    }
    case 2:
      return {
        call: { id, tool: 'test_simple_text', padding: random.between(KIB, 1_024 * KIB) },
        told: { kind: 'text', text: SIMPLE_TEXT },
      }
    default:
      return { call: { id, tool: 'show_request' }, told: { kind: 'own request' } }
  }
}

/** Calls tools without a session (2026-07-28). */
export const calls: Life = async (caller) => {
  const times = caller.random.between(2, 12)
  for (let time = 0; time < times && !caller.around.isOver(); time += 1) {
    const { call, told } = anyTool(caller)
    await ask(caller, { id: call.id, body: modernCall(call), told })
    await thinks(caller)
  }
}

/** Opens a session (2025-11-25), calls tools in it, listens for a while, and ends it. */
export const session: Life = async (caller) => {
  const { around, random } = caller
  const first = nameOf(caller)
  const begun = await ask(caller, { id: first, body: initialize(first), told: { kind: 'anything' }, isUnsafe: false })
  const id = begun.headers['mcp-session-id']
  if (begun.status !== 200 || begun.cut !== undefined || typeof id !== 'string') return
  await ask(caller, { id: nameOf(caller), body: initialized(id), told: { kind: 'anything' } })
  const headers = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' }
  const leaveAfterMs = random.between(500, 20_000)
  const listening = ask(caller, {
    id: nameOf(caller),
    method: 'GET',
    headers: { ...headers, accept: 'text/event-stream' },
    told: { kind: 'anything' },
    leaveAfterMs,
  })
  const times = random.between(1, 8)
  for (let time = 0; time < times && !around.isOver(); time += 1) {
    const { call, told } = anyTool(caller)
    await ask(caller, { id: call.id, body: legacyCall(call, id), told })
    await thinks(caller)
  }
  await listening
  await ask(caller, { id: nameOf(caller), method: 'DELETE', headers, told: { kind: 'anything' } })
}

/** Reads the list of the registry again and again. */
export const reads: Life = async (caller) => {
  const times = caller.random.between(1, 10)
  for (let time = 0; time < times && !caller.around.isOver(); time += 1) {
    await ask(caller, { id: nameOf(caller), method: 'GET', told: { kind: 'servers', names: LISTED } })
    await thinks(caller)
  }
}

/** Has the backend refuse the credential that all callers of the route share, again and again. */
export const provokes: Life = async (caller) => {
  const times = caller.random.between(4, 20)
  const told = { kind: 'refusal', reasons: ['502 backend_rejected_credential'] } as const
  for (let time = 0; time < times && !caller.around.isOver(); time += 1) {
    const id = nameOf(caller)
    const body = modernCall({ id, tool: 'fail_with_status', arguments: { status: 401 } })
    await ask(caller, { id, body, told, isUnsafe: false })
    await caller.around.think(caller.random.between(200, 1_000))
  }
}

/** Tries with what gives no right, in each way that there is. */
export const intrudes: Life = async (caller) => {
  const times = caller.random.between(1, 6)
  for (let time = 0; time < times && !caller.around.isOver(); time += 1) {
    const id = nameOf(caller)
    const told = { kind: 'own request' } as const
    if (caller.profile.origin !== undefined) await ask(caller, { id, method: 'GET', told })
    else await ask(caller, { id, body: modernCall({ id, tool: 'show_request' }), told })
    await thinks(caller)
  }
}
