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
    /** With the secrets in a directory. */
    readonly materialsIn: (directory: string) => Materials
  }

/** What a registry file asks for, opened: whoever has it closes it. */
export interface OpenContent extends RegistryContent {
  readonly auth: AuthSection
  readonly registries: ReadonlyMap<string, Source>
  /** Names of identity providers whose keys were asked for and never came. */
  readonly providersWithoutKeys: () => readonly string[]
  /** What the proxy authenticates with at its providers, and when it expires. */
  readonly ending: () => EndingCredential[]
  /** By what the file says of each part, so that the next content takes over what stays the same. */
  readonly parts: ReadonlyMap<string, Part>
}

type Part = Source | Authenticator | Clients

/** Where providers' clients find what they authenticate with. */
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
 * Opens what a registry file asks for and `before` does not have yet. Throws `ConfigError` when data of a registry that is new or
 * changed can't be used, unless there is no `before`: a server that starts waits for its data. Nothing is left open then,
 * and nothing of `before` has changed.
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
      const message = `registry ${name}: its data cannot be used (${problem ?? 'none'}); the ones from before stay`
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
  // Keys are fetched ahead of the first caller; what fails is logged there and tried again.
  if (before?.parts.get(key) === undefined) void tokens.start()
  // From here on `closeContent` closes the parts.
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

/** Lets go of what `next` does not use any more; of everything without `next`. */
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
 * The RFC 9728 document, at the root and where RFC 9728 §3.1 puts it for the resource's path. In mode `anonymous` the
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
