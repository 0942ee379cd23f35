import type { Caller } from '../core/index.ts'

/** The person to whom connections belong: issuer and identity of the caller (decisions §2.9). */
export interface Owner {
  readonly issuer: string
  readonly identity: string
}

/** A person's connection at one provider. */
export interface ConnectionRef {
  readonly owner: Owner
  readonly provider: string
  /** `connectionName` of both. */
  readonly name: string
}

/** The only person where connections have a single user. */
const LOCAL: Owner = { issuer: '', identity: 'local' }

export const ownerOf = (caller: Caller, isSingleUser: boolean): Owner =>
  isSingleUser || caller.kind === 'anonymous' ? LOCAL : { issuer: caller.issuer, identity: caller.identity }

/** Names a connection; for keys only as a keyed hash. */
export const connectionName = ({ issuer, identity }: Owner, provider: string): string =>
  JSON.stringify([issuer, identity, provider])

export const connectionRef = (owner: Owner, provider: string): ConnectionRef => ({
  owner,
  provider,
  name: connectionName(owner, provider),
})
