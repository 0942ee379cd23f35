import type { Claims } from '../../core/index.ts'
import { readJsonObject } from '../../http/index.ts'
import type { Client } from './client.ts'

/** A registered client as it is stored, before it is sealed. */
export function writeClient(client: Client): Buffer {
  return Buffer.from(JSON.stringify(client))
}

/** The client of a stored record; undefined for one that is none. */
export function readClient(value: Buffer): Client | undefined {
  const record = readJsonObject(value)
  if (record === undefined || typeof record.id !== 'string') return undefined
  // Written by us and by nobody else; what JSON leaves out is absent again.
  const { name, scope, jwksUri, jwks, assertionAlgorithm, secretHash, ...rest } = record as Claims & Client
  return { ...rest, name, scope, jwksUri, jwks, assertionAlgorithm, secretHash }
}
