import { signsAsService, type ResolvedAuth, type ResolvedAuthOf, type RunnableType } from '../resources/index.ts'
import { createCachedSource } from './cached.ts'
import { createCachedOwnSource } from './cached-own.ts'
import { createClientCredentialsSource } from './client-credentials.ts'
import { createCloudStsSource, createServiceSource } from './cloud-sts/index.ts'
import type { ObtainDeps } from './deps.ts'
import { createOboSource } from './obo.ts'
import type { Source } from './source.ts'
import { createStaticHeaderSource, createUnauthenticatedSource } from './static.ts'
import { createTokenExchangeSource } from './token-exchange.ts'
import { createUpstreamInjectSource } from './upstream-inject.ts'
import { createXaaSource } from './xaa.ts'

/** Makes the source of one type from a config of that type. Throws `Failure` for what can't run. */
export type SourceFactory<T extends RunnableType> = (auth: ResolvedAuthOf<T>, deps: ObtainDeps) => Source

type Sources = { readonly [T in RunnableType]: SourceFactory<T> }

/** One row per type that can run; a new type does not compile until it has one. */
export const SOURCES = {
  unauthenticated: () => createUnauthenticatedSource(),
  headerInjection: ({ spec }, { secrets, log }) =>
    createStaticHeaderSource({ name: spec.headerName, prefix: '', secret: secrets.handle(spec.valueSecretRef), log }),
  bearerToken: ({ spec }, { secrets, log }) =>
    createStaticHeaderSource({
      name: 'authorization',
      prefix: 'Bearer ',
      secret: secrets.handle(spec.tokenSecretRef),
      log,
    }),
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

/** The source of a config. Throws `Failure` for what can't. */
export function createSource(auth: ResolvedAuth, deps: ObtainDeps): Source {
  // The row of a type takes the config of that type; TypeScript can't follow one key through two unions.
  const factory: (auth: never, deps: ObtainDeps) => Source = SOURCES[auth.type]
  return factory(auth as never, deps)
}
