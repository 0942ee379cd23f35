import { expect, test } from 'vitest'
import { type CallOptions, electLeader, type KubeClient, KubeError, type KubeObject } from '../../../src/kube/index.ts'
import { createManualTimers, silentLog } from '../../support/kube/manual-timers.ts'

/** The one lease of a server that refuses a write with another version, and can be made to answer nothing. */
function createLeaseServer() {
  let stored: KubeObject | undefined
  let version = 0
  /** `silent`: so many requests get no answer before their deadline; `late`: writes are carried out and answered so late. */
  const state = { isDown: false, writes: 0, silent: 0, lateMs: 0 }
  const answer = <T>(give: () => T, call: CallOptions = {}): Promise<T> =>
    new Promise((resolve, reject) => {
      if (state.isDown) return reject(new KubeError(0, 'unreachable'))
      if (state.silent === 0) return resolve(give())
      state.silent--
      timers.after(call.deadlineMs ?? 10_000, () => reject(new KubeError(0, 'timeout')))
    })
  const later = <T>(give: () => T): Promise<T> =>
    state.lateMs === 0 ? answer(give) : new Promise((resolve) => void timers.after(state.lateMs, () => resolve(give())))
  const write = (object: KubeObject): KubeObject => {
    state.writes++
    stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } }
    return stored
  }
  const client: Pick<KubeClient, 'get' | 'create' | 'update'> = {
    get: (_type, _namespace, _name, call) =>
      answer(() => {
        if (stored === undefined) throw new KubeError(404, 'NotFound')
        return stored
      }, call),
    create: (_type, object) =>
      answer(() => {
        if (stored !== undefined) throw new KubeError(409, 'AlreadyExists')
        return write(object)
      }),
    update: (_type, object) =>
      later(() => {
        if (object.metadata.resourceVersion !== stored?.metadata.resourceVersion) throw new KubeError(409, 'Conflict')
        return write(object)
      }),
  }
  return {
    state,
    client: client as KubeClient,
    holder: () => (stored?.['spec'] as { holderIdentity?: string })?.holderIdentity,
  }
}

const timers = createManualTimers()

function candidate(server: { client: KubeClient }, identity: string, events: string[]) {
  return electLeader({
    client: server.client,
    namespace: 'ns',
    name: 'lease',
    identity,
    onAcquired: () => events.push(`${identity} leads`),
    onLost: () => events.push(`${identity} lost`),
    log: silentLog,
    timers,
  })
}

test('a holder that renews keeps the lease; one that dies is followed after its 15 seconds', async () => {
  const server = createLeaseServer()
  const events: string[] = []
  const first = candidate(server, 'first', events)
  await timers.advance(0)
  const second = candidate(server, 'second', events)
  await timers.advance(60_000)
  expect([first.isLeader, second.isLeader, server.holder()]).toEqual([true, false, 'first'])
  // As after kill -9: its last renewal stays, without a release.
  const dead = createLeaseServer()
  await dead.client.create(undefined as never, {
    apiVersion: 'v1',
    kind: 'Lease',
    metadata: { name: 'lease' },
    spec: { holderIdentity: 'gone', leaseDurationSeconds: 15 },
  })
  const heir = candidate(dead, 'heir', events)
  await timers.advance(14_000)
  expect(heir.isLeader).toBe(false)
  await timers.advance(4_000)
  expect(heir.isLeader).toBe(true)
  await Promise.all([settled(first.release()), settled(second.release()), settled(heir.release())])
})

test('who cannot renew stops acting after ten seconds, five before anybody else may begin', async () => {
  const server = createLeaseServer()
  const events: string[] = []
  const leader = candidate(server, 'cut off', events)
  await timers.advance(1)
  expect(leader.isLeader).toBe(true)
  server.state.isDown = true
  await timers.advance(9_000)
  expect(leader.isLeader).toBe(true)
  await timers.advance(1_100)
  expect(leader.isLeader).toBe(false)
  expect(events).toEqual(['cut off leads', 'cut off lost'])
  await settled(leader.release())
})

test('one connection that is silent does not cost the lease', async () => {
  const server = createLeaseServer()
  const events: string[] = []
  const leader = candidate(server, 'patient', events)
  await timers.advance(2_500)
  server.state.silent = 1
  await timers.advance(30_000)
  expect([leader.isLeader, events]).toEqual([true, ['patient leads']])
  await settled(leader.release())
})

test('who has lost the lease does not take it again, not even by a renewal that was on its way', async () => {
  const server = createLeaseServer()
  const events: string[] = []
  const leader = candidate(server, 'late', events)
  await timers.advance(1_000)
  server.state.lateMs = 12_000
  await timers.advance(16_000)
  server.state.lateMs = 0
  const { writes } = server.state
  await timers.advance(60_000)
  expect([leader.isLeader, events]).toEqual([false, ['late leads', 'late lost']])
  expect(server.state.writes).toBe(writes)
  await settled(leader.release())
})

test('a release empties the lease, and only a lease that is still ours', async () => {
  const server = createLeaseServer()
  const leader = candidate(server, 'one', [])
  await timers.advance(1)
  await settled(leader.release())
  expect(server.holder()).toBe('')
  expect(leader.isLeader).toBe(false)
})

async function settled(release: Promise<void>): Promise<void> {
  await timers.advance(2_000)
  await release
}
