import { createDecipheriv, createHmac, hkdfSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { createSeal, createSealingKeys, type SealingKeys } from '../../../src/storage/index.ts'
import { createManualClock, createTestSecrets } from '../../support/ports.ts'
import { bytes } from '../../support/storage/worlds.ts'

const FIRST = 'first-secret-that-is-long-enough-0001'
const SECOND = 'second-secret-that-is-long-enough-002'

/** Keys whose list a test sets; `pending` is found by the next refresh. */
function createKeys(...secrets: string[]) {
  let listed = secrets.map((secret) => new Secret(secret))
  const keys = {
    refreshes: 0,
    pending: undefined as readonly string[] | undefined,
    isEphemeral: false,
    current: () => listed,
    set(...next: string[]) {
      listed = next.map((secret) => new Secret(secret))
    },
    refresh() {
      keys.refreshes += 1
      if (keys.pending !== undefined) keys.set(...keys.pending)
      return Promise.resolve()
    },
  }
  return keys satisfies SealingKeys
}

function createWorld(...secrets: string[]) {
  const keys = createKeys(...secrets)
  const clock = createManualClock()
  return { keys, clock, seal: createSeal(keys, clock) }
}

describe('the seal', () => {
  it('opens what it sealed, under the same name', async () => {
    const { seal } = createWorld(FIRST)
    for (const plain of [bytes('a token'), Buffer.alloc(0), Buffer.alloc(100_000, 5)]) {
      expect(await seal.open('record', seal.seal('record', plain))).toEqual({ plain, isCurrent: true })
    }
  })

  it('does not open under another name', async () => {
    const { seal } = createWorld(FIRST)
    const sealed = seal.seal('session:alice', bytes('a token'))
    for (const name of ['session:bob', 'session:alic', 'session:alice ', '']) {
      expect(await seal.open(name, sealed), `as ${name}`).toBeUndefined()
    }
  })

  it('shows nothing of the value, and never the same bytes twice', () => {
    const { seal } = createWorld(FIRST)
    const sealed = [1, 2].map(() => seal.seal('record', bytes('a token that is easy to find')))
    expect(sealed[0]?.includes('easy')).toBe(false)
    expect(sealed[0]?.equals(sealed[1] ?? Buffer.alloc(0))).toBe(false)
  })

  it('opens nothing of which one bit is another', async () => {
    const { seal } = createWorld(FIRST)
    const sealed = seal.seal('record', bytes('a token'))
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const changed = Buffer.from(sealed)
      const at = Math.floor(bit / 8)
      changed[at] = (changed[at] ?? 0) ^ (1 << (bit % 8))
      const isOfTheId = at >= 1 && at <= 8
      if (isOfTheId) await expect(seal.open('record', changed)).rejects.toMatchObject({ kind: 'unknown_key' })
      else expect(await seal.open('record', changed), `bit ${bit}`).toBeUndefined()
    }
  })

  it('opens nothing that was cut or never sealed', async () => {
    const { seal } = createWorld(FIRST)
    const sealed = seal.seal('record', bytes('a token'))
    for (let length = 0; length < sealed.length; length += 1) {
      expect(await seal.open('record', sealed.subarray(0, length)), `cut to ${length}`).toBeUndefined()
    }
    expect(await seal.open('record', Buffer.concat([sealed, Buffer.of(0)]))).toBeUndefined()
  })
})

describe('rotation of the sealing secrets', () => {
  it('seals with the first, opens with all, and reports values to seal again', async () => {
    const { seal, keys } = createWorld(FIRST)
    const old = seal.seal('record', bytes('1'))
    keys.set(FIRST, SECOND)
    expect(await seal.open('record', old)).toMatchObject({ isCurrent: true })
    keys.set(SECOND, FIRST)
    expect(await seal.open('record', old)).toMatchObject({ plain: bytes('1'), isCurrent: false })
    const renewed = seal.seal('record', bytes('1'))
    keys.set(SECOND)
    expect(await seal.open('record', renewed)).toMatchObject({ isCurrent: true })
    await expect(seal.open('record', old)).rejects.toMatchObject({ name: 'StoreError', kind: 'unknown_key' })
  })

  it('reads the secrets again at once when another replica sealed with a new one', async () => {
    const other = createWorld(SECOND, FIRST)
    const sealed = other.seal.seal('record', bytes('1'))
    const { seal, keys } = createWorld(FIRST)
    keys.pending = [FIRST, SECOND]
    expect(await seal.open('record', sealed)).toEqual({ plain: bytes('1'), isCurrent: false })
    expect(keys.refreshes).toBe(1)
  })

  it('reads them once for many that are unknown, and not more than once a second', async () => {
    const { seal, keys, clock } = createWorld(FIRST)
    const sealed = createWorld(SECOND).seal.seal('record', bytes('1'))
    const open = () => seal.open('record', sealed).catch((error: unknown) => error)
    await Promise.all([open(), open(), open()])
    await open()
    expect(keys.refreshes).toBe(1)
    clock.advance(1_000)
    expect(await open()).toMatchObject({ kind: 'unknown_key' })
    expect(keys.refreshes).toBe(2)
    clock.advance(-3_600_000)
    await open()
    expect(keys.refreshes, 'a clock that was set back').toBe(3)
  })

  it('finds by each secret what was stored under a key of it', () => {
    const { seal, keys } = createWorld(FIRST)
    const old = seal.lookupKey('code', 'the code')
    keys.set(SECOND, FIRST)
    expect(seal.lookupKeys('code', 'the code')).toEqual([seal.lookupKey('code', 'the code'), old])
    expect(seal.lookupKey('code', 'the code')).not.toBe(old)
  })
})

describe('keys for one purpose', () => {
  const expand = (purpose: string, length: number) =>
    Buffer.from(hkdfSync('sha256', FIRST, '', `mcp-extauth storage ${purpose}`, length))

  it('are derived for it: who has the one for lookups opens nothing', async () => {
    const { seal } = createWorld(FIRST)
    const lookup = createHmac('sha256', expand('lookup', 32)).update('4:codethe code').digest('base64url')
    expect(seal.lookupKey('code', 'the code')).toBe(lookup)
    const sealed = seal.seal('record', bytes('plain'))
    expect(sealed.subarray(1, 9)).toEqual(expand('key id', 8))
    const open = (key: Buffer) => {
      const own = createHmac('sha256', key).update('record').digest()
      const decipher = createDecipheriv('aes-256-gcm', own, sealed.subarray(9, 21), { authTagLength: 16 })
      decipher.setAAD(bytes('record')).setAuthTag(sealed.subarray(-16))
      return Buffer.concat([decipher.update(sealed.subarray(21, -16)), decipher.final()]).toString()
    }
    expect(open(expand('sealing', 32))).toBe('plain')
    expect(() => open(expand('lookup', 32))).toThrow(/authenticate/)
  })
})

describe('lookup keys', () => {
  it('tell kinds and secrets apart wherever they are cut, and are fit for a key', () => {
    const { seal } = createWorld(FIRST)
    const keys = [
      ['code', 'a'],
      ['co', 'dea'],
      ['codea', ''],
      ['state', 'a'],
    ].map(([kind = '', secret = '']) => seal.lookupKey(kind, secret))
    expect(new Set(keys).size).toBe(4)
    for (const key of keys) expect(key).toMatch(/^[\w-]{43}$/)
  })
})

describe('the sealing keys', () => {
  it('are the secrets in their order, without those that cannot be read after the first', () => {
    const secrets = createTestSecrets({ 'a/1': FIRST, 'c/3': SECOND })
    const keys = createSealingKeys([secrets.get('a/1'), secrets.get('b/2'), secrets.get('c/3')])
    expect(keys.current().map((secret) => secret.reveal())).toEqual([FIRST, SECOND])
    expect(keys.isEphemeral).toBe(false)
    expect(() => createSealingKeys([secrets.get('b/2'), secrets.get('a/1')]).current()).toThrow('no secret b/2')
  })

  it('are looked at again on demand', async () => {
    const secrets = createTestSecrets({ 'a/1': FIRST })
    const keys = createSealingKeys([secrets.get('a/1')])
    secrets.get('a/1').pending = SECOND
    await keys.refresh()
    expect(keys.current().map((secret) => secret.reveal())).toEqual([SECOND])
  })

  it('are generated at start if none is configured: no other process opens their values', async () => {
    const [one, two] = [createSealingKeys([]), createSealingKeys([])]
    const clock = createManualClock()
    const sealed = createSeal(one, clock).seal('record', bytes('1'))
    expect(await createSeal(one, clock).open('record', sealed)).toMatchObject({ isCurrent: true })
    await expect(createSeal(two, clock).open('record', sealed)).rejects.toMatchObject({ kind: 'unknown_key' })
    expect(one.isEphemeral).toBe(true)
  })
})
