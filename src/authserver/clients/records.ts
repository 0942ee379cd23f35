import type { Claims } from '../../core/index.ts'
import { readJsonObject } from '../../http/index.ts'
import type { Client } from './client.ts'

/** Serializes a registered client, before sealing. */
export function writeClient(client: Client): Buffer {
  return Buffer.from(JSON.stringify(client))
}

/** Parses a stored record; undefined for an invalid one. */
export function readClient(value: Buffer): Client | undefined {
  const record = readJsonObject(value)
  if (record === undefined || typeof record.id !== 'string') return undefined
  // Only this server writes records, so the shape is trusted. JSON omits undefined fields.
  const { name, scope, jwksUri, jwks, assertionAlgorithm, secretHash, ...rest } = record as Claims & Client
  return { ...rest, name, scope, jwksUri, jwks, assertionAlgorithm, secretHash }
}
