import { afterEach, describe, expect, it } from 'vitest'
import { errorResponseFor } from '../../../src/bridge/bridge-error.ts'
import {
  amountOf,
  explain,
  diagnoseConnection,
  Failure,
  type ReachedLimit,
  OutboundError,
} from '../../../src/core/index.ts'
import { StoreError } from '../../../src/storage/index.ts'
import { probeConnection, requestOnce } from '../../../src/net/index.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const limit: ReachedLimit = { amount: 5000, unit: 'ms' }
const late = new OutboundError('timeout', { limit })

describe('a limit that was reached', () => {
  it.each<[ReachedLimit, string]>([
    [{ amount: 250, unit: 'ms' }, '250 ms'],
    [{ amount: 4321, unit: 'ms' }, '4.3 s'],
    [{ amount: 60_000, unit: 'ms' }, '60 s'],
    [{ amount: 10 * 1024 * 1024, unit: 'bytes' }, '10 MiB'],
    [{ amount: 2048, unit: 'bytes' }, '2 KiB'],
    [{ amount: 1024 * 1024 + 1024, unit: 'bytes' }, '1025 KiB'],
    [{ amount: 1025, unit: 'bytes' }, '1025 bytes'],
    [{ amount: 1000, unit: 'bytes' }, '1000 bytes'],
    [{ amount: 64, unit: 'at once' }, '64 at once'],
  ])('reads as people write it: %j', (one, text) => {
    expect(amountOf(one)).toBe(text)
  })

  it('has the same message in log, page, check and stdio, also as a cause', () => {
    const words = 'no response in time; the limit is 5 s (fixed)'
    expect(diagnoseConnection(late)?.cause).toBe(words)
    const failure = new Failure('identity_provider_unavailable', { cause: late })
    expect(explain(failure).cause).toBe(words)
    const beneath = new OutboundError('timeout', { cause: late })
    expect(explain(new Failure('identity_provider_unavailable', { cause: beneath })).cause).toBe(words)
    expect(errorResponseFor(1, late, 'at x').toString()).toContain(words)
  })

  it('of a store is reported with the setting of its storage', () => {
    const setting = { name: 'readTimeout', of: 'the storage' }
    const error = new StoreError('timeout', { limit: { amount: 3000, unit: 'ms', setting } })
    expect(explain(new Failure('store_unavailable', { detail: error.kind, cause: error })).cause).toBe(
      'timeout: no response in time; the limit is 3 s (readTimeout of the storage)',
    )
  })

  it('is reported by `check` for a missing connection and a missing response', async () => {
    const origin = await sockets.tcp(() => undefined)
    const probe = await probeConnection(origin.replace('http:', 'https:'), { deadlineMs: 50 })
    expect(diagnoseConnection(probe.failed)?.cause).toBe('no response in time; the limit is 50 ms (fixed)')
    const ask = (url: string, connectMs: number, deadlineMs: number) =>
      requestOnce(
        { origin: url, timeouts: { connect: connectMs, firstByte: 0, idle: 0 }, http2: false },
        { method: 'GET', url },
        { deadlineMs, maxBytes: 10 },
      ).catch((error: unknown) => diagnoseConnection(error)?.cause)
    expect(await ask(origin, 60_000, 400)).toBe('no response in time; the limit is 400 ms (fixed)')
    // Waits for TLS.
    expect(await ask(origin.replace('http:', 'https:'), 50, 60_000)).toBe(
      'the connection attempt timed out; the limit is 50 ms (timeouts.connect of the route)',
    )
  })

  it('is reported once, with its setting', () => {
    const setting = { name: 'timeouts.connect', of: 'the route' }
    const { cause, remedy } = explain(new Failure('backend_unreachable', { cause: late, limit: { ...limit, setting } }))
    expect(cause).toBe('no response in time; the limit is 5 s (timeouts.connect of the route)')
    expect(remedy).toBe(
      'Check the load and the log of the server. Raise timeouts.connect of the route if that is expected.',
    )
  })
})
