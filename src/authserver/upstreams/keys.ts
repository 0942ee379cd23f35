import { createLocalJWKSet, errors, type CompactVerifyGetKey, type JSONWebKeySet } from 'jose'
import type { Clock } from '../../core/index.ts'
import { type Connections, jsonAnswer, send, unusable } from './connection.ts'

const WHERE = 'key set'
const LIFETIME_MS = 3_600_000

/**
 * The keys at one `jwks_uri`, kept for an hour. A token with a key that is not among them makes them be fetched again:
 * who may show a token here comes from the provider's token endpoint, so nobody can make us fetch at will.
 */
export function createKeys(
  { documents }: Pick<Connections, 'documents'>,
  clock: Clock,
): (jwksUri: string) => CompactVerifyGetKey {
  let known: { readonly uri: string; readonly find: CompactVerifyGetKey; readonly untilMs: number } | undefined

  const fetchKeys = async (uri: string): Promise<CompactVerifyGetKey> => {
    const request = {
      method: 'GET',
      url: uri,
      headers: { accept: 'application/jwk-set+json, application/json' },
    } as const
    const document = jsonAnswer(await send(documents, request, WHERE), WHERE, clock.now())
    const find = readKeys(document as unknown as JSONWebKeySet)
    known = { uri, find, untilMs: clock.now() + LIFETIME_MS }
    return find
  }

  return (uri) => async (header, token) => {
    if (known !== undefined && known.uri === uri && clock.now() < known.untilMs) {
      try {
        return await known.find(header, token)
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      }
    }
    return (await fetchKeys(uri))(header, token)
  }
}

function readKeys(document: JSONWebKeySet): CompactVerifyGetKey {
  try {
    return createLocalJWKSet(document)
  } catch {
    throw unusable(`${WHERE}: it is none`)
  }
}
