import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { type Clock, isDuring, type Pause, Secret, type SecretHandle } from '../core/index.ts'
import { type SealingKeys, type StoredValue, StoreError } from './port.ts'

/**
 * A sealed value: format (1 byte), ID of the secret (8), nonce (12), ciphertext, tag (16). AES-256-GCM with a key per
 * record name, so that random nonces never collide.
 */
const FORMAT = 1
const ID_BYTES = 8
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEADER_BYTES = 1 + ID_BYTES + NONCE_BYTES

/** An unknown ID causes a reload of the secrets at most this often. */
const REFRESH_PAUSE_MS = 1_000

export interface Opened {
  readonly plain: Buffer
  /** False if sealed with a secret that is no longer the first: seal again on the next write. */
  readonly isCurrent: boolean
}

/** Encrypts stored data against readers of the store (authserver.md §5). */
export interface Seal {
  /** Seals for the record of this name only. Throws the errors of `SealingKeys.current`. */
  seal(name: string, plain: Buffer): Buffer
  /**
   * Opens a value sealed for this name; undefined if damaged or of another record. Throws `StoreError` `unknown_key`
   * for an unknown secret, after a reload.
   */
  open(name: string, sealed: Buffer): Promise<Opened | undefined>
  /** Lookup key of a secret: a keyed hash (HMAC-SHA256, base64url) with the first sealing secret. */
  lookupKey(kind: string, secret: string): string
  /** Lookup keys with each sealing secret, the first one first: possible keys after a rotation. */
  lookupKeys(kind: string, secret: string): readonly string[]
}

/** Keys as Node key objects: passing bytes costs as much as a short hash (docs/adr/0360). */
interface Derived {
  readonly id: Buffer
  readonly sealing: KeyObject
  readonly lookup: KeyObject
}

/** Creates the seal over `keys`, whose values may change. */
export function createSeal(keys: SealingKeys, clock: Clock): Seal {
  const derivedByDigest = new Map<string, Derived>()
  let listed: readonly Secret[] = []
  let derived: readonly Derived[] = []
  let refreshing: Promise<void> | undefined
  let refreshed: Pause | undefined

  const current = (): readonly Derived[] => {
    const secrets = keys.current()
    if (secrets.length === listed.length && secrets.every((secret, index) => secret === listed[index])) return derived
    const digests = secrets.map((secret) => secret.digest())
    derived = secrets.map((secret, index) => derivedByDigest.get(digests[index] ?? '') ?? derive(secret))
    derivedByDigest.clear()
    for (const [index, digest] of digests.entries()) {
      const entry = derived[index]
      if (entry !== undefined) derivedByDigest.set(digest, entry)
    }
    listed = secrets
    return derived
  }

  const first = (): Derived => {
    const [entry] = current()
    if (entry === undefined) throw new StoreError('unknown_key')
    return entry
  }

  const refresh = (): Promise<void> => {
    if (refreshing !== undefined) return refreshing
    if (isDuring(refreshed, clock.now())) return Promise.resolve()
    refreshing = keys.refresh().finally(() => {
      refreshing = undefined
      const sinceMs = clock.now()
      refreshed = { sinceMs, untilMs: sinceMs + REFRESH_PAUSE_MS }
    })
    return refreshing
  }

  const find = (id: Buffer) => current().find((entry) => entry.id.equals(id))

  return {
    seal(name, plain) {
      const { id, sealing } = first()
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', recordKey(sealing, name), nonce)
      cipher.setAAD(Buffer.from(name))
      const body = [cipher.update(plain), cipher.final()]
      return Buffer.concat([Buffer.of(FORMAT), id, nonce, ...body, cipher.getAuthTag()])
    },
    async open(name, sealed) {
      if (sealed.length < HEADER_BYTES + TAG_BYTES || sealed[0] !== FORMAT) return undefined
      const id = sealed.subarray(1, 1 + ID_BYTES)
      if (find(id) === undefined) await refresh()
      const entry = find(id)
      if (entry === undefined) throw new StoreError('unknown_key')
      const plain = decrypt(recordKey(entry.sealing, name), name, sealed)
      return plain && { plain, isCurrent: entry === first() }
    },
    lookupKey: (kind, secret) => keyedHash(first().lookup, kind, secret),
    lookupKeys: (kind, secret) => current().map((entry) => keyedHash(entry.lookup, kind, secret)),
  }
}

/** HKDF's info separates purposes (RFC 5869 §3.2); the ID reveals nothing of the key. */
function derive(secret: Secret): Derived {
  const expand = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', secret.bytes(), '', `mcp-extauth storage ${purpose}`, bytes))
  return {
    id: expand('key id', ID_BYTES),
    sealing: createSecretKey(expand('sealing', 32)),
    lookup: createSecretKey(expand('lookup', 32)),
  }
}

function recordKey(sealing: KeyObject, name: string): KeyObject {
  return createSecretKey(createHmac('sha256', sealing).update(name).digest())
}

function decrypt(key: KeyObject, name: string, sealed: Buffer): Buffer | undefined {
  const nonce = sealed.subarray(1 + ID_BYTES, HEADER_BYTES)
  const tagAt = sealed.length - TAG_BYTES
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(name))
  decipher.setAuthTag(sealed.subarray(tagAt))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES, tagAt)), decipher.final()])
  } catch {
    return undefined
  }
}

function keyedHash(key: KeyObject, kind: string, secret: string): string {
  return createHmac('sha256', key).update(`${kind.length}:${kind}${secret}`).digest('base64url')
}

/**
 * Creates the sealing keys of a list of secrets. The first must be readable; others are used if they are. Without
 * secrets, generates one that only this process can open.
 */
export function createSealingKeys(handles: readonly SecretHandle[]): SealingKeys {
  const [first, ...others] = handles
  if (first === undefined) {
    const made = [new Secret(randomBytes(32).toString('base64url'))]
    return { current: () => made, refresh: () => Promise.resolve(), isEphemeral: true }
  }
  return {
    current: () => [first.current(), ...others.flatMap((handle) => readable(handle) ?? [])],
    async refresh() {
      await Promise.all(handles.map((handle) => handle.refresh()))
    },
    isEphemeral: false,
  }
}

function readable(handle: SecretHandle): Secret | undefined {
  try {
    return handle.current()
  } catch {
    return undefined
  }
}

/** JSON values sealed under their key. */
export interface SealedRecords {
  write(key: string, record: unknown): Buffer
  /** Opens the record of this key; undefined if missing, or not sealed for this key. */
  read<T>(key: string, stored: StoredValue | undefined): Promise<T | undefined>
  /** The same, and whether it is sealed with the first secret; else seal it again. */
  open<T>(key: string, stored: StoredValue | undefined): Promise<OpenedRecord<T> | undefined>
}

interface OpenedRecord<T> {
  readonly record: T
  readonly isCurrent: boolean
}

/** Throws the errors of the seal: `StoreError` `unknown_key`, `secret_unavailable`. */
export function createSealedRecords(seal: Seal): SealedRecords {
  const open = async <T>(key: string, stored: StoredValue | undefined): Promise<OpenedRecord<T> | undefined> => {
    const opened = stored === undefined ? undefined : await seal.open(key, stored.value)
    // Only this product's data open, so the type is the written one.
    return opened && { record: JSON.parse(opened.plain.toString('utf8')) as T, isCurrent: opened.isCurrent }
  }
  return {
    open,
    write: (key, record) => seal.seal(key, Buffer.from(JSON.stringify(record))),
    async read<T>(key: string, stored: StoredValue | undefined) {
      return (await open<T>(key, stored))?.record
    },
  }
}
