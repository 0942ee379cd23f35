import { type Authenticator, isPublicPath, protectedResourceMetadata } from '../../authenticate/index.ts'
import { metadataPath, metadataUrl } from '../../http/index.ts'
import { createClientOf } from '../../listen/index.ts'
import {
  type AccessPolicy,
  openSource,
  type RegistryContent,
  type Source,
  type SourceDeps,
} from '../../registry/index.ts'
import type { AuthSection, RegistryConfig } from '../../resources/index.ts'
import { renderProblem } from '../../load/index.ts'
import type { ClientDeps } from '../../oauth/index.ts'
import { openAuthenticator } from '../proxy/pools.ts'
import { endingOfSection, type EndingCredential } from '../proxy/readiness.ts'
import { ConfigError } from '../config-error.ts'
import type { LoadedRegistry } from './load-registry.ts'
import type { Materials } from '../materials.ts'
import type { NamedSeries } from '../named-series.ts'

type Deps = SourceDeps &
  Omit<Parameters<typeof openAuthenticator>[1], 'materials'> & {
    readonly series: NamedSeries
    /** Opens materials with the secrets of a directory. */
    readonly materialsIn: (directory: string) => Materials
  }

/** The opened parts of a registry file; its holder closes it. */
export interface OpenContent extends RegistryContent {
  readonly auth: AuthSection
  readonly registries: ReadonlyMap<string, Source>
  /** Names of identity providers whose keys were requested and never received. */
  readonly providersWithoutKeys: () => readonly string[]
  /** Client credentials at identity providers, with their expiry. */
  readonly ending: () => EndingCredential[]
  /** Parts by their configuration; the next content reuses unchanged parts. */
  readonly parts: ReadonlyMap<string, Part>
}

type Part = Source | Authenticator | Clients

/** Client credentials at identity providers. */
interface Clients extends Omit<ClientDeps, 'clock'> {
  close(): Promise<void>
}

function openClients(materials: Materials): Clients {
  const held = materials.hold()
  return {
    ...held,
    close: () => {
      held.release()
      return Promise.resolve()
    },
  }
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/**
 * Opens the parts of a registry file that `before` does not have. Throws `ConfigError` if the data of a new or changed
 * registry are unusable; without `before` the server waits for its data instead. On an error nothing is left open and
 * `before` is unchanged.
 */
export async function openContent(loaded: LoadedRegistry, deps: Deps, before?: OpenContent): Promise<OpenContent> {
  const { config } = loaded
  await using opening = new AsyncDisposableStack()
  const parts = new Map<string, Part>()
  const part = async <P extends Part>(key: string, open: () => P | Promise<P>): Promise<P> => {
    const same = before?.parts.get(key) as P | undefined
    const opened = same ?? opening.adopt(await open(), (one) => one.close())
    parts.set(key, opened)
    return opened
  }
  const registries = new Map<string, Source>()
  for (const { name, source } of config.registries) {
    const opened = await part(`registry ${name} ${JSON.stringify(source)}`, () => openSource(name, source, deps))
    const { snapshot, problem } = opened.state()
    if (before !== undefined && before.registries.get(name) !== opened && snapshot === undefined) {
      const message = `registry ${name}: unusable data (${problem ?? 'none'}); the previous data stay active`
      const found = loaded.sourceProblem(name, message)
      throw new ConfigError([renderProblem(found)], { problems: [found] })
    }
    registries.set(name, opened)
  }
  const { auth, secretsDirectory } = config
  const key = `auth ${JSON.stringify([auth, secretsDirectory])}`
  const materials = deps.materialsIn(secretsDirectory)
  const tokens = await part(key, () => openAuthenticator(auth, { ...deps, materials }))
  const clients = await part(`clients ${key}`, () => Promise.resolve(openClients(materials)))
  // Prefetches keys; the authenticator logs failures and retries.
  if (before?.parts.get(key) === undefined) void tokens.start()
  // From here on `closeContent` owns the parts.
  opening.move()
  return {
    auth,
    registries,
    parts,
    ending: () => endingOfSection(auth, clients),
    access: accessOf(config, tokens),
    documentsFor: (url) => documentsOf(auth, url),
    providersWithoutKeys: () => tokens.withoutKeys(),
  }
}

/** Closes the parts that `next` does not use; without `next`, all of them. */
export async function closeContent(content: OpenContent, next?: OpenContent): Promise<void> {
  const gone = [...content.parts].filter(([key, part]) => next?.parts.get(key) !== part)
  await Promise.all(gone.map(([, part]) => part.close()))
}

function accessOf({ auth, trustedProxies }: RegistryConfig, tokens: Authenticator): AccessPolicy {
  if (auth.mode === 'anonymous') return { mode: 'anonymous' }
  const { resourceUrl, realm, publicPaths } = auth.oauth
  const clientOf = createClientOf(trustedProxies)
  return {
    mode: 'oauth',
    tokens,
    peerOf: (request) => clientOf(request).address,
    realm: realm ?? new URL(resourceUrl).host,
    resourceMetadata: metadataUrl(resourceUrl),
    isPublicPath: (path) => isPublicPath(publicPaths, path),
  }
}

/**
 * The protected resource metadata (RFC 9728), at the root and at the path of §3.1. In mode `anonymous` the
 * resource is the server itself (decisions §2.7).
 */
function documentsOf(auth: AuthSection, url: string): ReadonlyMap<string, object> {
  const resourceUrl = auth.mode === 'oauth' ? auth.oauth.resourceUrl : url
  const documented = auth.mode === 'oauth' ? auth.oauth.resourceDocumentation : undefined
  const document = protectedResourceMetadata({
    resourceUrl,
    auth,
    resourceDocumentation: documented ?? `${resourceUrl.replace(/\/$/, '')}/openapi.json`,
  })
  const path = URL.canParse(resourceUrl) ? (metadataPath(resourceUrl).split('?')[0] ?? WELL_KNOWN) : WELL_KNOWN
  return new Map([
    [WELL_KNOWN, document],
    [path, document],
  ])
}
