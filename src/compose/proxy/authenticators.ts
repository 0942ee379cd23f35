import { type Authenticator, createAuthenticator, type InProcessProvider } from '../../authenticate/index.ts'
import { RefCountedPool } from '../../core/index.ts'
import type { AuthSection } from '../../resources/index.ts'
import type { RouteIssuer } from './auth-servers.ts'
import type { OpenSecrets } from '../../secrets/index.ts'
import type { NamedFiles } from '../named-files.ts'
import type { NamedSeries } from '../named-series.ts'

type AuthenticateDeps = Parameters<typeof createAuthenticator>[1]

/** An authenticator whose providers' series of metrics are there until it is closed. Throws as `createAuthenticator` does. */
export function openAuthenticator(
  series: NamedSeries,
  section: AuthSection,
  deps: AuthenticateDeps,
  inProcess?: readonly InProcessProvider[],
): Authenticator {
  const authenticator = createAuthenticator(section, deps, inProcess)
  const providers = section.mode === 'oauth' ? section.oauth.providers : []
  const releases = providers.map(({ name }) => series.hold('name', name))
  const release = (): void => {
    for (const one of releases) one()
  }
  return { ...authenticator, close: () => authenticator.close().finally(release) }
}

/** The authenticators of one configuration; routes with the same `auth` section share one. */
export interface HeldAuthenticators {
  /** The authenticator of a section, and of an issuer in this process beside it; nothing is fetched for it yet. */
  get(section: AuthSection, own?: RouteIssuer): Authenticator
  /** The configuration is in force: keys are fetched ahead of the first caller. */
  start(): void
  /** Names of the providers whose keys were asked for and never came. */
  withoutKeys(): readonly string[]
  release(): Promise<void>
}

/** Authenticators that are kept over reloads which do not change their section, closed with the last that has it. */
export interface Authenticators {
  hold(): HeldAuthenticators
}

type OpenDeps = Omit<AuthenticateDeps, 'client'> & {
  readonly series: NamedSeries
  readonly secrets: OpenSecrets
  readonly namedFiles: NamedFiles
}

/** An authenticator that holds its secrets and files until it is closed: it may outlive the configuration that opened it. */
export function openHoldingAuthenticator(
  section: AuthSection,
  deps: OpenDeps,
  inProcess: readonly InProcessProvider[] = [],
): Authenticator {
  const [secrets, files] = [deps.secrets.hold(), deps.namedFiles.hold()]
  const release = (): void => {
    secrets.release()
    files.release()
  }
  try {
    const client = { secrets, tokenFile: (path: string | undefined) => files.token(path) }
    const authenticator = openAuthenticator(deps.series, section, { ...deps, client }, inProcess)
    return { ...authenticator, close: () => authenticator.close().finally(release) }
  } catch (error) {
    release()
    throw error
  }
}

/** Keeps one authenticator per different section. */
export function createAuthenticators(deps: OpenDeps): Authenticators {
  const pool = new RefCountedPool<Authenticator>((authenticator) => authenticator.close())
  const started = new WeakSet<Authenticator>()
  return {
    hold() {
      const held = pool.hold()
      const used = new Set<Authenticator>()
      return {
        get(section, own) {
          const inProcess = own === undefined ? [] : [own.provider]
          const key = JSON.stringify([section, own?.key])
          const authenticator = held.get(key, () => openHoldingAuthenticator(section, deps, inProcess))
          used.add(authenticator)
          return authenticator
        },
        start() {
          for (const authenticator of used) {
            if (started.has(authenticator)) continue
            started.add(authenticator)
            // What fails is logged there and tried again.
            void authenticator.start()
          }
        },
        withoutKeys: () => [...new Set([...used].flatMap((authenticator) => authenticator.withoutKeys()))],
        release: () => held.release(),
      }
    },
  }
}
