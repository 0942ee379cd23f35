import { errors, type Adapter, type AdapterPayload } from 'oidc-provider'
import { hashKey } from '../../cache/index.ts'
import type { Store } from '../../storage/index.ts'
import type { Client, GrantType } from '../clients/client.ts'
import type { ClientDirectory } from '../clients/directory.ts'
import { publicMetadata } from '../clients/registration.ts'
import { TOLERANCE_SECONDS } from '../lifespans.ts'
import { OAuthError } from '../oauth-error.ts'
import type { TokenService } from '../tokens/token-service.ts'

export interface AdapterParts {
  readonly clients: ClientDirectory
  readonly tokens: TokenService
  readonly store: Store
  /** The grants of this server. */
  readonly grantTypes: readonly GrantType[]
}

/**
 * What the server library may see of our state: clients, so that it authenticates them; refresh tokens, so that it revokes them;
 * and the identifiers of assertions, so that each is used once. Codes and tokens are never written through it: its find-then-write
 * is two steps, and two replicas would both win (docs/adr/0045).
 */
export function createAdapter(model: string, parts: AdapterParts): Adapter {
  const none: Adapter = {
    upsert: () => Promise.reject(new Error(`nothing is stored as ${model}`)),
    find: () => Promise.resolve(undefined),
    findByUserCode: () => Promise.resolve(undefined),
    findByUid: () => Promise.resolve(undefined),
    consume: () => Promise.resolve(),
    destroy: () => Promise.resolve(),
    revokeByGrantId: () => Promise.resolve(),
  }
  if (model === 'Client') return { ...none, find: (id) => findClient(id, parts) }
  if (model === 'RefreshToken') return { ...none, ...refreshTokens(parts.tokens) }
  if (model === 'ReplayDetection') return { ...none, upsert: (id) => useOnce(id, parts.store) }
  return none
}

async function findClient(
  id: string,
  { clients, grantTypes }: Pick<AdapterParts, 'clients' | 'grantTypes'>,
): Promise<AdapterPayload | undefined> {
  try {
    const client = await clients.find(id)
    // Which grants it has is judged by our handlers: `unauthorized_client` is what RFC 6749 §5.2 calls it.
    const grants = { grant_types: [...grantTypes] }
    if (client === undefined) return undefined
    // Scopes are ours to judge, too. The library knows none, and refuses a client whole that has registered one.
    const { scope: _scope, ...metadata } = publicMetadata(client)
    // Ours have no prototypes, and the library takes only objects that have one.
    return structuredClone({ ...metadata, ...grants, ...secretOf(client) })
  } catch (error) {
    // Whatever is wrong with a metadata document, here it means that the client is not known.
    if (error instanceof OAuthError) throw new errors.InvalidClientAuth(error.description)
    throw error
  }
}

/** The library compares secrets through us (`compareClientSecret`), so that the hash takes the secret's place. */
const secretOf = ({ secretHash }: Client): AdapterPayload =>
  secretHash === undefined ? {} : { client_secret: secretHash, client_secret_expires_at: 0 }

function refreshTokens(tokens: TokenService): Pick<Adapter, 'find' | 'destroy'> {
  return {
    async find(token) {
      const family = await tokens.familyOf(token)
      return family && { kind: 'RefreshToken', jti: token, clientId: family.clientId, grantId: family.tsid }
    },
    async destroy(token) {
      const family = await tokens.familyOf(token)
      if (family !== undefined) await tokens.end(family.tsid)
    },
  }
}

/** Longest life of a client assertion, seconds: as long as its identifier is remembered. */
export const MOST_ASSERTION_SECONDS = 3_600

/** RFC 7523 §3, `jti`: the first one with this identifier passes, for as long as any assertion may live. */
async function useOnce(id: string, store: Store): Promise<void> {
  const ttlMs = (MOST_ASSERTION_SECONDS + TOLERANCE_SECONDS) * 1_000
  if (!(await store.putIfAbsent(`assertion:${hashKey([id])}`, Buffer.alloc(0), ttlMs)))
    throw new errors.InvalidClientAuth('client assertion tokens must only be used once')
}
