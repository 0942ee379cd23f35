import { type Asked, ask, type Caller } from './caller.ts'
import { LISTED } from '../world/registry.ts'
import { initialize, initialized, legacyCall, type ToolCall, modernCall } from './messages.ts'

/** The requests of a caller from the first to the last. */
export type Life = (caller: Caller) => Promise<void>

const KIB = 1024
const SIMPLE_TEXT = 'This is a simple text response for testing.'

const thinks = ({ around, random }: Caller): Promise<void> => around.think(random.between(200, 5_000))

/** Ids are drawn, so that no two callers have the same. */
const nameOf = ({ name, random }: Caller): string => `${name}-${random.between(0, 0xffffff).toString(36)}`

/** A tool with what it must answer, of all kinds: short, in steps, large, with a large request. */
function anyTool(caller: Caller): { readonly call: ToolCall; readonly expectation: Asked['expectation'] } {
  const { random } = caller
  const id = nameOf(caller)
  switch (random.between(0, 6)) {
    case 0: {
      const steps = random.between(2, 12)
      const given = { steps, intervalMs: random.between(20, 800) }
      return {
        call: { id, tool: 'stream_progress', arguments: given, wantsProgress: true },
        expectation: { kind: 'steps', steps },
      }
    }
    case 1: {
      const bytes = random.between(1, 512 * KIB)
      return { call: { id, tool: 'large_result', arguments: { bytes } }, expectation: { kind: 'bytes', bytes } }
    }
    case 2:
      return {
        call: { id, tool: 'test_simple_text', padding: random.between(KIB, 1_024 * KIB) },
        expectation: { kind: 'text', text: SIMPLE_TEXT },
      }
    default:
      return { call: { id, tool: 'show_request' }, expectation: { kind: 'own request' } }
  }
}

/** Calls tools without a session (2026-07-28). */
export const calls: Life = async (caller) => {
  const times = caller.random.between(2, 12)
  for (let time = 0; time < times && !caller.around.isOver(); time += 1) {
    const { call, expectation } = anyTool(caller)
    await ask(caller, { id: call.id, body: modernCall(call), expectation })
    await thinks(caller)
  }
}

/** Opens a session (2025-11-25), calls tools in it, listens for a while, and ends it. */
export const session: Life = async (caller) => {
  const { around, random } = caller
  const first = nameOf(caller)
  const begun = await ask(caller, {
    id: first,
    body: initialize(first),
    expectation: { kind: 'anything' },
    isUnsafe: false,
  })
  const id = begun.headers['mcp-session-id']
  if (begun.status !== 200 || begun.cut !== undefined || typeof id !== 'string') return
  await ask(caller, { id: nameOf(caller), body: initialized(id), expectation: { kind: 'anything' } })
  const headers = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' }
  const leaveAfterMs = random.between(500, 20_000)
  const listening = ask(caller, {
    id: nameOf(caller),
    method: 'GET',
    headers: { ...headers, accept: 'text/event-stream' },
    expectation: { kind: 'anything' },
    leaveAfterMs,
  })
  const times = random.between(1, 8)
  for (let time = 0; time < times && !around.isOver(); time += 1) {
    const { call, expectation } = anyTool(caller)
    await ask(caller, { id: call.id, body: legacyCall(call, id), expectation })
    await thinks(caller)
  }
  await listening
  await ask(caller, { id: nameOf(caller), method: 'DELETE', headers, expectation: { kind: 'anything' } })
}

/** Reads the list of the registry again and again. */
export const reads: Life = async (caller) => {
  const times = caller.random.between(1, 10)
  for (let time = 0; time < times && !caller.around.isOver(); time += 1) {
    await ask(caller, { id: nameOf(caller), method: 'GET', expectation: { kind: 'servers', names: LISTED } })
    await thinks(caller)
  }
}

/** Has the backend refuse the credential that all callers of the route share, again and again. */
export const provokes: Life = async (caller) => {
  const times = caller.random.between(4, 20)
  const expectation = { kind: 'refusal', reasons: ['502 backend_rejected_credential'] } as const
  for (let time = 0; time < times && !caller.around.isOver(); time += 1) {
    const id = nameOf(caller)
    const body = modernCall({ id, tool: 'fail_with_status', arguments: { status: 401 } })
    await ask(caller, { id, body, expectation, isUnsafe: false })
    await caller.around.think(caller.random.between(200, 1_000))
  }
}

/** Tries with what gives no right, in each way that there is. */
export const intrudes: Life = async (caller) => {
  const times = caller.random.between(1, 6)
  for (let time = 0; time < times && !caller.around.isOver(); time += 1) {
    const id = nameOf(caller)
    const expectation = { kind: 'own request' } as const
    if (caller.profile.origin !== undefined) await ask(caller, { id, method: 'GET', expectation })
    else await ask(caller, { id, body: modernCall({ id, tool: 'show_request' }), expectation })
    await thinks(caller)
  }
}
