import {
  signsAsService,
  type ResolvedAuth,
  type ResolvedAuthOf,
  type RunnableType,
  type SecretRef,
} from '../resources/index.ts'
import { createCachedSource } from './cached.ts'
import { createCachedOwnSource } from './cached-own.ts'
import { createClientCredentialsSource } from './client-credentials.ts'
import { createConnectedSource } from './connected.ts'
import { createCloudStsSource, createServiceSource } from './cloud-sts/index.ts'
import type { ObtainDeps } from './deps.ts'
import { createOboSource } from './obo.ts'
import type { Source } from './source.ts'
import { createStaticHeaderSource, createUnauthenticatedSource } from './static.ts'
import { createTokenExchangeSource } from './token-exchange.ts'
import { createUpstreamInjectSource } from './upstream-inject.ts'
import { createXaaSource } from './xaa.ts'

/** Creates the source of one type. Throws `Failure` for an unsupported config. */
export type SourceFactory<T extends RunnableType> = (auth: ResolvedAuthOf<T>, deps: ObtainDeps) => Source

type Sources = { readonly [T in RunnableType]: SourceFactory<T> }

/** One row per supported type; a new type does not compile without one. */
export const SOURCES = {
  unauthenticated: () => createUnauthenticatedSource(),
  headerInjection: ({ spec: { headerName, valueSecretRef, connectionName } }, deps) =>
    createHeaderSource({ name: headerName, prefix: '' }, valueSecretRef, connectionName, deps),
  bearerToken: ({ spec: { tokenSecretRef, connectionName } }, deps) =>
    createHeaderSource({ name: 'authorization', prefix: 'Bearer ' }, tokenSecretRef, connectionName, deps),
  tokenExchange: (auth, deps) => createCachedSource(auth, createTokenExchangeSource(auth, deps), deps),
  clientCredentials: (auth, deps) => createCachedOwnSource(auth, createClientCredentialsSource(auth, deps), deps),
  obo: (auth, deps) => createCachedSource(auth, createOboSource(auth, deps), deps),
  xaa: (auth, deps) => createXaaSource(auth, deps),
  upstreamInject: (auth, deps) => createUpstreamInjectSource(auth, deps),
  cloudSts: (auth, deps) =>
    signsAsService(auth.spec)
      ? createServiceSource(auth, deps)
      : createCachedSource(auth, createCloudStsSource(auth, deps), deps),
} satisfies Sources

/** One header with a secret of the configuration, or with the credential of the caller's connection. */
function createHeaderSource(
  header: { readonly name: string; readonly prefix: string },
  ref: SecretRef | undefined,
  connectionName: string | undefined,
  { secrets, connections, log }: ObtainDeps,
): Source {
  if (ref !== undefined) return createStaticHeaderSource({ ...header, secret: secrets.handle(ref), log })
  return createConnectedSource({ ...header, provider: connectionName ?? '' }, connections)
}

/** Creates the source of a config. Throws `Failure` for an unsupported one. */
export function createSource(auth: ResolvedAuth, deps: ObtainDeps): Source {
  // TypeScript can't follow one key through two unions.
  const factory: (auth: never, deps: ObtainDeps) => Source = SOURCES[auth.type]
  return factory(auth as never, deps)
}
